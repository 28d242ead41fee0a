"""Frame classifiers side by side: accuracy on single frames, and pm-k; and what papers print of the same benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jostle.errors import BadValue
from jostle.reporting.analysis.comparison import check_comparable
from jostle.reporting.analysis.labels import benchmark_title, run_names
from jostle.reporting.analysis.literature import literature_on
from jostle.reporting.analysis.record import RunRecord

Interval = tuple[float, float]


@dataclass(frozen=True)
class Stability:
    """One classifier; values are fractions.

    Attributes:
        name: of the run, or of the published model.
        accuracy, pm_k: shares of anchors that are right alone, and with all their neighbours.
        accuracy_interval, pm_k_interval: exact, 95 %; None with fewer than two anchors, and for published ones.
    """

    name: str
    accuracy: float
    pm_k: float
    accuracy_interval: Interval | None = None
    pm_k_interval: Interval | None = None

    @property
    def drop(self) -> float:
        """What the neighbours take from the accuracy."""
        return self.accuracy - self.pm_k


@dataclass(frozen=True)
class Stabilities:
    """Classifiers of one benchmark.

    Attributes:
        title: of the benchmark.
        k: the radius in frames.
        anchors: how many there are.
        runs: measured here, the best accuracy first.
        published: as printed.
        apart: why the published ones are not to be held against the runs.
    """

    title: str
    k: int
    anchors: int
    runs: tuple[Stability, ...]
    published: tuple[Stability, ...]
    apart: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"format": 1, **asdict(self)}


def stabilities(records: Sequence[RunRecord]) -> Stabilities:
    """What runs of one benchmark of frame classifiers say.

    Raises:
        BadValue: if they are of another task.
        Incomparable: if they are of different benchmarks or ground truths.
    """
    other = next((record for record in records if record.task != "frames"), None)
    if other is not None:
        raise BadValue(f"{other.folder}: is a run of {other.task}; accuracy against pm-k is for frame classifiers")
    check_comparable(records)
    made = []
    for name, record in zip(run_names(records), records, strict=True):
        found = record.scores.clean_more.pm_k
        assert found is not None  # a record of frames has one
        k, anchors = found.k, found.anchors
        made.append(Stability(name, found.accuracy, found.pm_k, found.accuracy_interval, found.pm_k_interval))
    told = literature_on(records)
    printed = () if told is None else told.models
    return Stabilities(
        benchmark_title(records[0]),
        k,
        anchors,
        tuple(sorted(made, key=lambda one: (-one.accuracy, one.name))),
        tuple(
            Stability(one.name, one.clean, one.corrupted)
            for one in printed
            if one.clean is not None and one.corrupted is not None
        ),
        () if told is None else told.remarks[:-1],  # the last is said of all figures that are printed
    )
