"""Frame classifiers side by side: accuracy on single frames, and pm-k; and what papers print of the same benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.errors import BadValue
from jostle.evaluation.results.comparison import check_comparable
from jostle.evaluation.results.pm_k import offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.analysis.labels import benchmark_title, run_names
from jostle.reporting.analysis.literature import literature_on

Interval = tuple[float, float]


@dataclass(frozen=True)
class Stability:
    """One classifier; values are fractions.

    Attributes:
        name: of the run, or of the published model.
        accuracy, pm_k: shares of anchors that are right alone, and with all their neighbours.
        accuracy_interval, pm_k_interval: 95 %, over videos; None with fewer than two of them, and for published ones.
    """

    name: str
    accuracy: float
    pm_k: float
    accuracy_interval: Interval | None = None
    pm_k_interval: Interval | None = None

    @property
    def drop(self) -> float:
        """Difference of accuracy between anchors and their neighbourhoods."""
        return self.accuracy - self.pm_k


@dataclass(frozen=True)
class Stabilities(Result):
    """Stability of several frame classifiers on one benchmark."""

    title: str  # of the benchmark
    k: int  # the radius in frames
    anchors: int  # how many there are
    runs: tuple[Stability, ...]  # measured here, the best accuracy first
    published: tuple[Stability, ...]  # as printed
    apart: tuple[str, ...]  # why the published ones are not to be held against the runs
    intervals: str  # what those of the runs are, in words
    figures: tuple[Path, ...] = ()  # that were drawn of them

    def tables(self) -> tuple[Table, ...]:
        """Return accuracy and pm-k of each classifier."""
        columns = (
            Column("", key="name"),
            Column("accuracy", "percent"),
            Column("95 %", "interval", key="accuracy"),
            Column(f"pm-{self.k}", "percent"),
            Column("95 %", "interval", key=f"pm-{self.k}"),
            Column("drop", "percent"),
        )
        rows = [
            (one.name, one.accuracy, one.accuracy_interval, one.pm_k, one.pm_k_interval, one.drop) for one in self.runs
        ]
        return (Table("", columns, tuple(rows)),)

    def notes(self) -> tuple[str, ...]:
        """Return what the runs are of, and why published figures are not to be held against them."""
        more = f" And {len(self.apart) - 1} more are so." if len(self.apart) > 1 else ""
        return (f"{self.title}, {self.anchors} anchors; {self.intervals}", *(one + more for one in self.apart[:1]))

    def written(self) -> tuple[Path, ...]:
        """Return the path of the first figure."""
        return self.figures[:1]


def stabilities(records: Sequence[RunRecord]) -> Stabilities:
    """Collect the stability of runs of one frame classification benchmark.

    Raises:
        BadValue: if they are of another task.
        Incomparable: if they are of different benchmarks or ground truths.
    """
    other = next((record for record in records if not offset_errors(record)), None)
    if other is not None:
        raise BadValue(f"{other.folder}: is a run of {other.task.name}; accuracy against pm-k is for frame classifiers")
    check_comparable(records)
    results = []
    for name, record in zip(run_names(records), records, strict=True):
        score = offset_errors(record)[0]
        k, anchors, intervals = score.k, score.anchors, score.interval_text
        results.append(Stability(name, score.accuracy, score.pm_k, score.accuracy_interval, score.pm_k_interval))
    literature = literature_on(records)
    printed = () if literature is None else literature.models
    return Stabilities(
        benchmark_title(records[0]),
        k,
        anchors,
        tuple(sorted(results, key=lambda one: (-one.accuracy, one.name))),
        tuple(
            Stability(one.name, one.clean, one.corrupted)
            for one in printed
            if one.clean is not None and one.corrupted is not None
        ),
        () if literature is None else literature.remarks[:-1],  # the last holds for all printed figures
        intervals,
    )
