"""What a run is a run of: the content of run.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from jostle.errors import JostleError
from jostle.io.files.records import Count, Misfit, Share, fitted
from jostle.metrics.protocol import checked_tious, protocols
from jostle.metrics.robustness import split_cell

FORMAT = 1
_CLEAN = "clean"  # as in benchmarks, which are above
Task = Literal["detection", "recognition", "frames", "objects"]


@dataclass(frozen=True)
class Step:
    """One corruption of a cell, as it was when the run began.

    Attributes:
        spec: how it was written.
        corruption: the function that did it.
        value: what that was given for the severity.
        options: and besides.
        placement: which frames were struck.
    """

    spec: str
    corruption: str
    value: Any
    options: dict[str, Any]
    placement: str


@dataclass(frozen=True)
class CellContent:
    """A cell of the benchmark.

    Attributes:
        cell: its name.
        group: that it belongs to.
        counted: whether the means are over it.
        done: what was done to videos, in order.
    """

    cell: str
    group: str
    counted: bool
    done: tuple[Step, ...]

    def __post_init__(self) -> None:
        if self.cell != _CLEAN:
            try:
                split_cell(self.cell)
            except JostleError as error:
                raise Misfit(f"is no cell: {error}").under("cell") from None


@dataclass(frozen=True)
class Content:
    """What the benchmark consisted of; `Recipe.content` gives it, and its fields say what each means."""

    format: Literal[1]
    name: str
    version: Count
    dataset: str
    subset: str
    task: Task
    metric: str
    k: Count | None
    labels_of: Literal["own", "anchor"] | None
    protocol: str | None
    tious: tuple[Share, ...]
    sampling: dict[str, Any] | None
    cells: tuple[CellContent, ...]

    def __post_init__(self) -> None:
        names = [one.cell for one in self.cells]
        if not names or names[0] != _CLEAN or len(set(names)) < len(names):
            raise Misfit("are not the clean cell and then others, each once").under("cells")
        if self.task == "detection":
            if self.protocol not in protocols:
                raise Misfit(f"is {self.protocol!r}, not one of {', '.join(protocols)}").under("protocol")
            try:
                checked_tious(self.tious)
            except JostleError as error:
                raise Misfit(f"cannot be: {error}").under("tious") from None
        elif not self.k:
            raise Misfit(f"is {self.k}, and a run of {self.task} has at least 1").under("k")
        if (self.task == "frames") != (self.labels_of is not None):
            raise Misfit(f"is {self.labels_of!r} in a run of {self.task}").under("labels_of")

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Content:
        """What a recipe says of itself."""
        return fitted(cls, plain)

    def cell(self, name: str) -> CellContent | None:
        """The cell of a name."""
        return next((one for one in self.cells if one.cell == name), None)


def model_said(model: str, mend: str | None) -> str:
    """A model as it ran: its name, and whether struck frames were taken out before it looked.

    >>> model_said("actionformer", None), model_said("actionformer", "jostle"), model_said("actionformer", "known")
    ('actionformer', 'actionformer, mended', 'actionformer, mended (known)')
    """
    if mend is None:
        return model
    return f"{model}, mended" if mend == "jostle" else f"{model}, mended ({mend})"


@dataclass(frozen=True, repr=False)
class UsedPart:
    """A part of a run that is not jostle's own; `jostle.core.plugins.Origin` says what each field means."""

    shelf: str
    name: str
    module: str
    package: str
    version: str
    checksum: str

    def __str__(self) -> str:
        whose = f"{self.package} {self.version}" if self.package else self.module
        return f"{self.name} of {whose} ({self.checksum[:19]})" if self.checksum else f"{self.name} of {whose}"

    __repr__ = __str__

    @property
    def way(self) -> str:
        """What to do to have it, in words that end a message."""
        return f"pip install {self.package}=={self.version}" if self.package else f"--import {self.module}"


@dataclass(frozen=True)
class Origin:
    """What decides the results of a run. A folder holds results of one origin.

    Attributes:
        benchmark: its name.
        fingerprint: of the benchmark.
        content: what the benchmark consists of.
        model: its name.
        weights: fingerprint of its weights, or None where nothing is known of them.
        weights_from: what that is the fingerprint of: a file, a folder, tensors, or nothing.
        extractor: the name of what makes features for a detector; None where nothing does.
        extractor_weights: fingerprint of the extractor's weights.
        rule: how the windows of features are counted; None where there are none.
        released_faults: of the THUMOS14-C extractors, which were repeated.
        shown: how frames become the input of a recogniser, and how its classes were matched; None for others.
        device: that the model ran on: another gives other last digits.
        seed: of every random draw.
        dataset: the name of the data set.
        subset: the part of it that is looked at.
        truth: fingerprint of what is annotated there.
        missing: ids that are annotated and have no file.
        recipe: the recipe that the benchmark puts on these data; its own name, where they are its own.
        parts: what of all this is not jostle's own, and where it came from.
        precision: of the numbers that networks computed with.
        compiled: whether networks went through torch.compile.
        mend: what said which frames were struck, so that what they touch was replaced; None where it was let be.
        mend_weights: fingerprint of that.
    """

    benchmark: str
    fingerprint: str
    content: Content
    model: str
    weights: str | None
    weights_from: str
    extractor: str | None
    extractor_weights: str | None
    rule: str | None
    released_faults: tuple[str, ...]
    shown: dict[str, Any] | None
    device: str
    seed: int
    dataset: str
    subset: str
    truth: str
    missing: tuple[str, ...]
    recipe: str = field(default="", kw_only=True)
    parts: tuple[UsedPart, ...] = field(default=(), kw_only=True)
    precision: str = field(default="float32", kw_only=True)
    compiled: bool = field(default=False, kw_only=True)
    mend: str | None = field(default=None, kw_only=True)
    mend_weights: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not self.recipe:  # as in runs before recipes could be put on other data
            object.__setattr__(self, "recipe", self.benchmark)

    @property
    def said(self) -> str:
        """The model as it ran."""
        return model_said(self.model, self.mend)


@dataclass(frozen=True)
class About(Origin):
    """What run.json holds.

    Attributes:
        videos: how many are annotated.
        classes: of detections; none where the files of predictions name them.
        versions: of the libraries that decide bits.
    """

    videos: Count
    classes: tuple[str, ...]
    versions: dict[str, str]
    format: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format != FORMAT:
            raise Misfit(f"is {self.format}, not {FORMAT}: another version of jostle wrote it").under("format")
        if len(set(self.classes)) < len(self.classes):
            raise Misfit("hold one class twice").under("classes")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"format": self.format} | asdict(self)
