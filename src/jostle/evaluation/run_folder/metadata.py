"""Metadata of a run: the content of run.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from jostle.errors import JostleError
from jostle.io.files.records import Count, Share, ValidationError, parse_record
from jostle.metrics.protocol import check_tious, protocols
from jostle.metrics.robustness import split_cell

FORMAT = 1
_CLEAN = "clean"  # as in recipes, which import this module
Task = Literal["detection", "recognition", "frames", "objects", "questions", "moments"]


@dataclass(frozen=True)
class Step:
    """One corruption of a cell, as it was when the run began."""

    spec: str
    corruption: str  # name of the function
    value: Any  # argument for the severity
    options: dict[str, Any]
    placement: str  # which frames were corrupted


@dataclass(frozen=True)
class CellContent:
    """A cell of the benchmark."""

    cell: str
    group: str
    counted: bool  # whether the means include it
    done: tuple[Step, ...]  # corruptions applied to videos, in order

    def __post_init__(self) -> None:
        if self.cell != _CLEAN:
            try:
                split_cell(self.cell)
            except JostleError as error:
                raise ValidationError(f"is not a cell: {error}").under("cell") from None


@dataclass(frozen=True)
class Content:
    """Definition of the benchmark, from `Recipe.content`; see `Recipe` for the fields."""

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
            raise ValidationError("must be the clean cell, then others, each once").under("cells")
        if self.task == "detection":
            if self.protocol not in protocols:
                raise ValidationError(f"is {self.protocol!r}, not one of {', '.join(protocols)}").under("protocol")
            try:
                check_tious(self.tious)
            except JostleError as error:
                raise ValidationError(f"are invalid: {error}").under("tious") from None
        elif not self.k and self.task not in ("questions", "moments"):
            raise ValidationError(f"is {self.k}; a run of {self.task} needs at least 1").under("k")
        if (self.task == "frames") != (self.labels_of is not None):
            raise ValidationError(f"is {self.labels_of!r} in a run of {self.task}").under("labels_of")

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Content:
        """Validate the content of a recipe."""
        return parse_record(cls, plain)

    def cell(self, name: str) -> CellContent | None:
        """Return the cell of a name, or None."""
        return next((one for one in self.cells if one.cell == name), None)


def format_model(model: str, mend: str | None, adapt: str | None = None) -> str:
    """Format the name of a model, whether corrupted frames were mended, and how the network was adapted.

    >>> [format_model("actionformer", mend) for mend in (None, "jostle", "known")]
    ['actionformer', 'actionformer, mended', 'actionformer, mended (known)']
    >>> format_model("puppet_c3d", None, "tent, online")
    'puppet_c3d, adapted (tent, online)'
    """
    if mend is not None:
        model = f"{model}, mended" if mend == "jostle" else f"{model}, mended ({mend})"
    return model if adapt is None else f"{model}, adapted ({adapt})"


def format_adaptation(adapt: Mapping[str, Any] | None) -> str | None:
    """Format method and protocol of an adaptation; None without one.

    >>> format_adaptation({"method": "tent", "protocol": "online", "settings": {}})
    'tent, online'
    """
    return None if adapt is None else f"{adapt['method']}, {adapt['protocol']}"


@dataclass(frozen=True, repr=False)
class UsedPart:
    """Part of a run that comes from a plugin; see `jostle.core.plugins.Origin` for the fields."""

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
        """Command or option that provides the part, for messages."""
        return f"pip install {self.package}=={self.version}" if self.package else f"--import {self.module}"


@dataclass(frozen=True)
class RunOrigin:
    """Everything that decides the results of a run; a folder contains results of one origin."""

    benchmark: str
    fingerprint: str
    content: Content  # what the benchmark consists of
    model: str
    weights: str | None  # fingerprint of its weights; None if unknown
    weights_from: str  # source of that fingerprint: a file, a folder, tensors, or nothing
    extractor: str | None  # name of a detector's feature extractor; None without one
    extractor_weights: str | None  # fingerprint of the extractor's weights
    rule: str | None  # rule for feature windows; None without features
    reproduce_bugs: tuple[str, ...]  # of the THUMOS14-C extractors, which were repeated
    # How frames become the input of a recogniser, and how its classes were matched; None for others.
    shown: dict[str, Any] | None
    device: str  # device of the model; results on another differ in the last digits
    seed: int  # of every random draw
    dataset: str
    subset: str  # the part of it that is evaluated
    truth: str  # fingerprint of its annotations
    missing: tuple[str, ...]  # ids that are annotated and have no file
    # The recipe that the benchmark applies to these data; its own name, if they are its own.
    recipe: str = field(default="", kw_only=True)
    parts: tuple[UsedPart, ...] = field(default=(), kw_only=True)  # parts that come from plugins
    precision: str = field(default="float32", kw_only=True)  # floating-point precision of the networks
    compiled: bool = field(default=False, kw_only=True)  # whether networks went through torch.compile
    # Name of the inspector that found corrupted frames; None without mending.
    mend: str | None = field(default=None, kw_only=True)
    mend_weights: str | None = field(default=None, kw_only=True)  # fingerprint of the inspector
    # How the network adapts to the videos: method, protocol, settings, order of videos; None if it does not.
    adapt: dict[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not self.recipe:  # run.json written before recipes could be applied to other data
            object.__setattr__(self, "recipe", self.benchmark)
        if self.adapt is not None and not all(isinstance(self.adapt.get(key), str) for key in ("method", "protocol")):
            raise ValidationError("has no method and protocol").under("adapt")

    @property
    def display_name(self) -> str:
        """Name of the model, whether corrupted frames were mended, and how the network was adapted."""
        return format_model(self.model, self.mend, format_adaptation(self.adapt))


@dataclass(frozen=True)
class EarlyDecision:
    """Condition of a budget that was decided before all videos were processed."""

    name: str
    metric: str
    limit: float
    decision: Literal["pass", "fail", "undecided"]
    videos: Count  # that decided it
    value: float  # of the metric on these videos
    reference: float | None  # of the reference run on them; None for a condition without one
    level: float


@dataclass(frozen=True)
class StoppedEarly:
    """Why a run was ended before all videos were processed."""

    reason: str
    videos: Count
    of: Count
    about: str  # what the decisions are about
    against: str | None  # folder of the reference run
    conditions: tuple[EarlyDecision, ...]


@dataclass(frozen=True)
class About(RunOrigin):
    """Content of a run's run.json."""

    videos: Count  # number of annotated videos
    classes: tuple[str, ...]  # classes of detections; empty where the predictions files name them
    versions: dict[str, str]  # versions of the libraries that affect results
    format: int
    stopped_early: StoppedEarly | None = field(default=None, kw_only=True)  # None for a run of all videos
    # Whether what cells share with the clean video was computed once; off where that changed bits on the processor.
    reuse: Literal["on", "off"] = field(default="on", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format != FORMAT:
            raise ValidationError(f"is {self.format}, not {FORMAT}: another version of jostle wrote it").under("format")
        if len(set(self.classes)) < len(self.classes):
            raise ValidationError("contain a class twice").under("classes")

    def to_dict(self) -> dict[str, Any]:
        """Return the content as a JSON-serializable dictionary."""
        content = {"format": self.format} | asdict(self)
        for key in ("stopped_early", "adapt"):
            if content[key] is None:
                del content[key]
        return content
