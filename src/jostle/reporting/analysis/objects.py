"""Robustness of object detectors: mAP on anchor frames, and on the worst frame near each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.run_folder.scores import BoxScore
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.tables import Column, Table


@dataclass(frozen=True)
class ObjectFinding:
    """One cell of a run of an object detector.

    Attributes:
        cell: `clean`, or a corruption.
        what: `detection`, with the right class, or `localisation`, with any.
        score: what it is worth.
    """

    cell: str
    what: str
    score: BoxScore

    @property
    def drop(self) -> float:
        """Difference of mAP between anchors and their worst neighbours."""
        return self.score.mean_ap - self.score.pm_k


def object_findings(record: RunRecord) -> list[ObjectFinding]:
    """Both measures in every cell, the clean one first; empty for other tasks."""
    if record.task != "objects":
        return []
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
