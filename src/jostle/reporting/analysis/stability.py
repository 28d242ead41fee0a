"""Frame classifiers side by side: accuracy on single frames, and pm-k; and what papers print of the same benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jostle.core.tables import Column, Kind, Table
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
class Stabilities:
    """Stability of several frame classifiers on one benchmark."""

    title: str  # of the benchmark
    k: int  # the radius in frames
    anchors: int  # how many there are
    runs: tuple[Stability, ...]  # measured here, the best accuracy first
    published: tuple[Stability, ...]  # as printed
    apart: tuple[str, ...]  # why the published ones are not to be held against the runs
    intervals: str  # what those of the runs are, in words

    def table(self) -> Table:
        """Return a table with one row a run."""
        kinds: tuple[Kind, ...] = ("percent", "interval", "percent", "interval", "percent")
        names = ("accuracy", "95 %", f"pm-{self.k}", "95 %", "drop")
        columns = (Column("run"), *map(Column, names, kinds))
        rows = [
            (one.name, one.accuracy, one.accuracy_interval, one.pm_k, one.pm_k_interval, one.drop) for one in self.runs
        ]
        return Table("Accuracy and pm-k", columns, tuple(rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the stabilities as plain values for JSON."""
        return {"format": 1, **asdict(self)}


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
