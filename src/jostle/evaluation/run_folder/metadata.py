"""Metadata of a run: the content of run.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from jostle.core.options import Role, described, option
from jostle.core.schema import Count, Mismatch, Share, parse
from jostle.errors import JostleError
from jostle.metrics.protocol import check_tious, protocols
from jostle.metrics.robustness import split_cell
from jostle.models.options import ComputeOptions

FORMAT = 1
_CLEAN = "clean"  # as in recipes, which import this module


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
                raise Mismatch(f"is not a cell: {error}").under("cell") from None


@dataclass(frozen=True)
class Content:
    """Definition of the benchmark, from `Recipe.content`; see `Recipe` for the fields."""

    format: Literal[1]
    name: str
    version: Count
    dataset: str
    subset: str
    task: str
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
            raise Mismatch("must be the clean cell, then others, each once").under("cells")
        if self.protocol is not None:
            if self.protocol not in protocols:
                raise Mismatch(f"is {self.protocol!r}, not one of {', '.join(protocols)}").under("protocol")
            try:
                check_tious(self.tious)
            except JostleError as error:
                raise Mismatch(f"are invalid: {error}").under("tious") from None
        if self.k == 0:
            raise Mismatch("is 0; it must be at least 1").under("k")

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Content:
        """Validate the content of a recipe."""
        return parse(cls, plain)

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


@dataclass(frozen=True, kw_only=True)
class BenchmarkFacts:
    """Which benchmark a run is of."""

    benchmark: str = field(metadata=option("Its name.", Role.SAME))
    fingerprint: str = field(metadata=option("Hash of its content.", Role.SAME))
    content: Content = field(metadata=option("What it consists of.", Role.SAME))


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """Which model was run, and what it was shown."""

    model: str = field(metadata=option("Its name.", Role.ENTRY))
    weights: str | None = field(
        default=None, metadata=option("Fingerprint of its weights, or None if unknown.", Role.ENTRY)
    )
    weights_from: str = field(
        default="nothing", metadata=option("Of what that is: a file, a folder, tensors, or nothing.", Role.ENTRY)
    )
    extractor: str | None = field(
        default=None, metadata=option("Feature extractor of a detector, or None without one.", Role.ENTRY)
    )
    extractor_weights: str | None = field(
        default=None, metadata=option("Fingerprint of the weights of the extractor.", Role.ENTRY)
    )
    rule: str | None = field(
        default=None,
        metadata=option(
            "Rule for feature windows, or None without features.",
            Role.CONDITION,
            words="window rule",
            default_words="all",
        ),
    )
    reproduce_bugs: tuple[str, ...] = field(
        default=(),
        metadata=option("Bugs of the THUMOS14-C extractors, repeated.", Role.CONDITION, words="reproduced bugs"),
    )
    shown: dict[str, Any] | None = field(
        default=None,
        metadata=option(
            "How frames become the input of a recogniser, and how its classes were matched; None for others.",
            Role.ENTRY,
        ),
    )
    device: str = field(default="cpu", metadata=option("Device of networks; on another last digits differ.", Role.BITS))


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """On which data a run is, and the seed of every random draw."""

    seed: int = field(
        metadata=option("Seed of every draw.", Role.CONDITION, words="seed of the corruptions", default_words="0")
    )
    dataset: str = field(metadata=option("Name of the data set.", Role.SAME))
    subset: str = field(metadata=option("The part of it that is evaluated.", Role.SAME))
    truth: str = field(metadata=option("Fingerprint of its annotations.", Role.SAME))
    missing: tuple[str, ...] = field(metadata=option("Ids that are annotated and have no file.", Role.SAME))


@dataclass(frozen=True, kw_only=True)
class RecipeFacts:
    """From where the parts of a run are."""

    recipe: str = field(
        default="",
        metadata=option(
            "Recipe that the benchmark applies to these data; its own name, if they are its own.", Role.SAME
        ),
    )
    parts: tuple[UsedPart, ...] = field(default=(), metadata=option("Parts that come from plugins.", Role.ENTRY))


@dataclass(frozen=True, kw_only=True)
class TreatmentFacts(ComputeOptions):
    """How networks computed, and what was done to them and to frames."""

    mend: str | None = field(
        default=None,
        metadata=option("Inspector that found damaged frames, or None.", Role.CONDITION, words="mending"),
    )
    mend_weights: str | None = field(
        default=None, metadata=option("Its fingerprint.", Role.CONDITION, words="weights of the inspector")
    )
    adapt: dict[str, Any] | None = field(
        default=None,
        metadata=option(
            "How the network adapts to the videos: method, protocol, settings, order of videos; None if it does not.",
            Role.CONDITION,
            words="adaptation",
        ),
    )

    def __post_init__(self) -> None:
        if self.adapt is not None and not all(isinstance(self.adapt.get(key), str) for key in ("method", "protocol")):
            raise Mismatch("has no method and protocol").under("adapt")


NAMED = ("mend", "mend_weights", "adapt")  # conditions that the name of a model says


@dataclass(frozen=True, kw_only=True)
class RunFacts(TreatmentFacts, RecipeFacts, DataFacts, ModelFacts, BenchmarkFacts):
    """Everything that decides the results of a run; a folder contains results of one set of facts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.recipe:  # run.json written before recipes could be applied to other data
            object.__setattr__(self, "recipe", self.benchmark)

    @property
    def display_name(self) -> str:
        """Name of the model, whether corrupted frames were mended, and how the network was adapted."""
        return format_model(self.model, self.mend, format_adaptation(self.adapt))

    def conditions(self) -> dict[str, str]:
        """Return the conditions under which the model was tested, in words, by what they are called."""
        return {words: value for _, words, value, _ in self._conditions()}

    def special_conditions(self) -> dict[str, str]:
        """Return the conditions that are not the default and not in the name of the model, in words."""
        return {
            words: value
            for name, words, value, default in self._conditions()
            if value not in ("none", default) and name not in NAMED
        }

    def _conditions(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield name, words, value and default of every condition."""
        for one in fields(RunFacts):
            about = described(one)
            if about.role is Role.CONDITION:
                default = about.default_words or _in_words(one.default)
                yield one.name, about.words or one.name, _in_words(getattr(self, one.name)), default


def _in_words(value: Any) -> str:
    """Return the value of a condition in words.

    >>> [_in_words(value) for value in (None, False, ("early-row",), {"method": "bn", "protocol": "online"}, 3)]
    ['none', 'off', 'early-row', 'bn, online', '3']
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return str(format_adaptation(value))
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "none" if value is None else str(value)


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


@dataclass(frozen=True, kw_only=True)
class About(RunFacts):
    """Content of a run's run.json."""

    videos: Count  # number of annotated videos
    classes: tuple[str, ...]  # classes of detections; empty where the predictions files name them
    versions: dict[str, str]  # versions of the libraries that affect results
    format: int
    stopped_early: StoppedEarly | None = None  # None for a run of all videos
    # Whether what cells share with the clean video was computed once; off where that changed bits on the processor.
    reuse: Literal["on", "off"] = "on"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format != FORMAT:
            raise Mismatch(f"is {self.format}, not {FORMAT}: another version of jostle wrote it").under("format")
        if len(set(self.classes)) < len(self.classes):
            raise Mismatch("contain a class twice").under("classes")

    @property
    def facts(self) -> RunFacts:
        """What decides the results, without what is known only once the run has begun."""
        return RunFacts(**{one.name: getattr(self, one.name) for one in fields(RunFacts)})

    def special_conditions(self) -> dict[str, str]:
        """Return the conditions that are not the default, and whether the run stopped early, in words."""
        early = {} if self.stopped_early is None else {"stopped early": self.stopped_early.reason}
        return super().special_conditions() | early

    def to_dict(self) -> dict[str, Any]:
        """Return the content as a JSON-serializable dictionary."""
        content = {"format": self.format} | asdict(self)
        for key in ("stopped_early", "adapt"):
            if content[key] is None:
                del content[key]
        return content
