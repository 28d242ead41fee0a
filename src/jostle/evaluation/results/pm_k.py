"""pm-k of a run: errors by distance from the anchor frame, and object detectors on the worst frame near it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jostle.core.schema import parse
from jostle.core.tables import Column, Table
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import measure_cell
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import processed_videos
from jostle.evaluation.run_folder.scores import BoxScore, PmKScore
from jostle.metrics.pm_k import describe_share_intervals


@dataclass(frozen=True)
class OffsetErrors:
    """One cell of a run of pm-k.

    Attributes:
        cell: `clean`, or a corruption.
        k: the radius in frames.
        anchors: how many there are.
        accuracy, pm_k: shares of anchors that are right alone, and with all their neighbours.
        accuracy_interval, pm_k_interval: 95 %, over videos; None with fewer than two of them.
        videos: how many the anchors are of.
        error: share of wrong neighbours at each offset, rising.
    """

    cell: str
    k: int
    anchors: int
    accuracy: float
    accuracy_interval: tuple[float, float] | None
    pm_k: float
    pm_k_interval: tuple[float, float] | None
    videos: int
    error: dict[int, float]

    @property
    def interval_text(self) -> str:
        """What the intervals are, in words."""
        return describe_share_intervals(self.anchors, self.videos)

    @property
    def drop(self) -> float:
        """Difference of accuracy between anchors and their neighbourhoods."""
        return self.accuracy - self.pm_k


def offset_errors(record: RunRecord) -> list[OffsetErrors]:
    """The errors in every cell, the clean one first; empty where runs have none."""
    cells = [(CLEAN, record.scores.clean_more.pm_k), *((one.cell, one.pm_k) for one in record.scores.listed)]
    return [_errors(cell, _over_videos(record, cell, result)) for cell, result in cells if result is not None]


def _over_videos(record: RunRecord, cell: str, result: PmKScore) -> PmKScore:
    """Return a result with intervals over videos: that of an older run, which drew anchors, is computed again."""
    if result.videos is not None or cell not in record.cells:
        return result
    return parse(PmKScore, measure_cell(record, cell, processed_videos(record)).more["pm_k"])


def _errors(cell: str, result: PmKScore) -> OffsetErrors:
    return OffsetErrors(
        cell,
        result.k,
        result.anchors,
        result.accuracy,
        result.accuracy_interval,
        result.pm_k,
        result.pm_k_interval,
        result.anchors if result.videos is None else result.videos,
        dict(sorted(result.error_by_offset.items())),
    )


@dataclass(frozen=True)
class ObjectFinding:
    """One cell of a run of an object detector."""

    cell: str  # `clean`, or a corruption
    what: str  # `detection`, with the right class, or `localisation`, with any
    score: BoxScore  # what it is worth

    @property
    def drop(self) -> float:
        """Difference of mAP between anchors and their worst neighbours."""
        return self.score.mean_ap - self.score.pm_k


def object_findings(record: RunRecord) -> list[ObjectFinding]:
    """Both measures in every cell, the clean one first; empty where runs have none."""
    cell_objects = [
        (CLEAN, record.scores.clean_more.objects),
        *((one.cell, one.objects) for one in record.scores.listed),
    ]
    return [
        ObjectFinding(cell, what, getattr(objects, what))
        for cell, objects in cell_objects
        if objects is not None
        for what in ("detection", "localisation")
    ]


def objects_table(rows: Sequence[tuple[str, ObjectFinding]]) -> Table:
    """A row a run, a cell and a measure."""
    k = rows[0][1].score.k
    columns = (
        Column("run"),
        Column("cell"),
        Column("measure"),
        Column("mAP on anchors", "percent"),
        Column("95 %", "interval"),
        Column(f"pm-{k} mAP", "percent"),
        Column("95 %", "interval"),
        Column("drop", "percent"),
    )
    cells = tuple(
        (
            name,
            one.cell,
            one.what,
            one.score.mean_ap,
            one.score.mean_ap_interval,
            one.score.pm_k,
            one.score.pm_k_interval,
            one.drop,
        )
        for name, one in rows
    )
    return Table("Objects: mean average precision on anchors, and on the worst frame near each", columns, cells)
