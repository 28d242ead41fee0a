"""A run in a few kilobytes, for those who do not have its folder: with a checksum, and refused if that does not fit."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from jostle.errors import DataError, Tampered
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.run_folder.metadata import Task, format_model
from jostle.evaluation.run_folder.scores import Counted, Coverage
from jostle.io.files.atomic import write_text
from jostle.io.files.records import Count, Share, ValidationError, parse_record, read_record
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.comparison import Standing
from jostle.reporting.analysis.labels import benchmark_title
from jostle.reporting.analysis.pm_k import offset_errors
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import Estimate, RunAnalysis

KIND = "jostle run record"
NEAR = 1e-9  # of means in binary
_REMEDY = "ask its maker for another, by `jostle board --export RUN`"


@dataclass(frozen=True)
class Number:
    """A value with its interval; fractions."""

    value: float | None  # None where it has no meaning
    interval: tuple[float, float] | None = None  # (low, high), None where it cannot be had

    @classmethod
    def of(cls, estimate: Estimate) -> Number:
        """Return the number of an analysis."""
        return cls(estimate.value, estimate.interval)


@dataclass(frozen=True)
class CellNumber:
    """Score of one cell in a record."""

    cell: str
    value: Share
    interval: tuple[float, float] | None
    counted: bool


@dataclass(frozen=True)
class RunSummary:
    """Leaderboard record of a run."""

    # Of what it is a run
    benchmark: str
    title: str
    fingerprint: str
    recipe: str  # what the benchmark does; its own name, where the data are its own too
    task: Task  # what kind of benchmark that is
    metric: str  # what the scores are
    # On what, and the fingerprint of what is annotated there
    dataset: str
    subset: str
    truth: str
    model: str  # its name
    weights: str | None  # fingerprint of its weights, or None where nothing is known of them
    weights_from: str  # what that is the fingerprint of
    # What made features for a detector; None where nothing did
    extractor: str | None
    extractor_weights: str | None
    # How it ran
    device: str
    seed: int
    versions: dict[str, str]  # of the libraries that decide bits, jostle among them
    coverage: Coverage  # on how many videos, of how many
    counted: Counted  # over how many cells the means are, of how many
    clean: Number  # the score on clean video; of a frame classifier its accuracy on anchors
    corrupted: Number  # the mean over cells; of a frame classifier without cells, pm-k
    relative: Number  # what is left of the clean score; None of a frame classifier without cells
    guesses: bool  # whether it is at chance level on clean video
    cells: tuple[CellNumber, ...]  # what each is worth
    draws: Count  # of the videos, for the intervals
    mend: str | None = None  # the inspector that found damaged frames, or None if nothing was mended
    mend_weights: str | None = None  # fingerprint of that

    def __post_init__(self) -> None:
        values = [one.value for one in self.cells if one.counted]
        if not values:
            return
        mean = math.fsum(values) / len(values)
        if self.corrupted.value is None or abs(self.corrupted.value - mean) > NEAR:
            raise ValidationError(f"is {self.corrupted.value}, and its cells have a mean of {mean:.6g}").under(
                "corrupted"
            )
        left = None if not self.clean.value else mean / self.clean.value
        if (left is None) != (self.relative.value is None) or abs((self.relative.value or 0) - (left or 0)) > NEAR:
            raise ValidationError(f"is {self.relative.value}, and the others give {left}").under("relative")

    @property
    def display_name(self) -> str:
        """The model as it ran."""
        return format_model(self.model, self.mend)

    @property
    def whole(self) -> bool:
        """Whether the record covers all videos and all cells."""
        return self.coverage.videos == self.coverage.of and self.counted.cells == self.counted.of

    @property
    def coverage_text(self) -> str:
        """On how much it is, in words."""
        cells = f", {self.counted.cells} of {self.counted.of} cells" if self.counted.of else ""
        return f"{self.coverage.videos} of {self.coverage.of} videos{cells}"

    @property
    def by_corruption(self) -> dict[str, float]:
        """The mean over severities of each corruption that counts."""
        found: dict[str, list[float]] = {}
        for one in self.cells:
            if one.counted:
                found.setdefault(split_cell(one.cell)[0], []).append(one.value)
        return {name: math.fsum(values) / len(values) for name, values in found.items()}

    @property
    def checksum(self) -> str:
        """Checksum of the content, independent of its layout in a file."""
        return _checksum(_plain(self))


def summary_of(analysis: RunAnalysis) -> RunSummary:
    """Summarise an analysed run."""
    record = analysis.record
    about, scores = record.about, record.scores
    numbers = (Number.of(analysis.of(CLEAN)), Number.of(analysis.corrupted()), Number.of(analysis.relative()))
    offsets = offset_errors(record)
    if offsets and not analysis.counted:
        own = offsets[0]
        numbers = (Number(own.accuracy, own.accuracy_interval), Number(own.pm_k, own.pm_k_interval), Number(None))
    facts = ("benchmark", "fingerprint", "recipe", "dataset", "subset", "truth", "device", "seed", "versions")
    more = ("model", "weights", "weights_from", "extractor", "extractor_weights", "mend", "mend_weights")
    return RunSummary(
        **{name: getattr(about, name) for name in (*facts, *more)},
        title=benchmark_title(record),
        task=record.task,
        metric=scores.metric,
        coverage=scores.coverage,
        counted=scores.counted,
        clean=numbers[0],
        corrupted=numbers[1],
        relative=numbers[2],
        guesses=Standing.of(analysis).guesses,
        cells=tuple(_cell(analysis, cell) for cell in analysis.cells if cell != CLEAN),
        draws=len(analysis.drawn),
    )


def _cell(analysis: RunAnalysis, cell: str) -> CellNumber:
    own = analysis.of(cell)
    if own.value is None:
        raise DataError(f"{analysis.record.folder}: {cell} has no value; the same `jostle run` measures it")
    return CellNumber(cell, own.value, own.interval, cell in analysis.counted)


def check_whole(record: RunRecord) -> None:
    """Raise DataError unless a run is on all videos and cells of its benchmark."""
    coverage, counted = record.scores.coverage, record.scores.counted
    if coverage.videos < coverage.of or counted.cells < counted.of:
        raise DataError(
            f"{record.folder}: on {coverage.videos} of {coverage.of} videos and {counted.cells} of {counted.of} cells; "
            "the same `jostle run` does the rest, or let it count as a part of the benchmark (partial=True, --partial)"
        )


def write_summary(summary: RunSummary, path: Path) -> None:
    """Write a record, with its checksum; the target changes all at once."""
    plain = {"format": 1, "kind": KIND, "checksum": summary.checksum, "record": _plain(summary)}
    write_text(path, [json.dumps(plain, indent=1, ensure_ascii=False), "\n"])


@dataclass(frozen=True)
class _Sealed:
    """A file that `write_summary` wrote."""

    format: Literal[1]
    kind: Literal["jostle run record"]
    checksum: str
    record: dict[str, Any]


def read_summary(path: Path) -> RunSummary:
    """A record, once its checksum and its sums are found right.

    Raises:
        Tampered: if it is not as it was written.
        DataError: if it is no record.
    """
    sealed = read_record(_Sealed, path, _REMEDY)
    if _checksum(sealed.record) != sealed.checksum:
        raise Tampered(
            f"{path}: was changed after it was written: its checksum is {_checksum(sealed.record)[:19]}, and it says "
            f"{sealed.checksum[:19]}; {_REMEDY}",
            fault="F118",
        )
    try:
        return parse_record(RunSummary, sealed.record)
    except ValidationError as error:
        raise Tampered(f"{path}: record.{error}; {_REMEDY}", fault="F118") from None


def _plain(summary: RunSummary) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(asdict(summary), allow_nan=False))
    # Without mending the key is left out, as in older records, so that their checksums stay valid.
    return {key: value for key, value in content.items() if value is not None or not key.startswith("mend")}


def _checksum(record: dict[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
