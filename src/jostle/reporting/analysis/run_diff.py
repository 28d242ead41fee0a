"""Two runs of one benchmark, cell by cell: what the second has over the first, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.notebook import data_frame, html_table
from jostle.errors import Incomparable
from jostle.reporting.analysis.cell_tables import comparison_table
from jostle.reporting.analysis.comparison import Comparison, Difference, compared, surveys_of
from jostle.reporting.analysis.labels import run_names
from jostle.reporting.analysis.literature import Literature, literature_on
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.resampling import DRAWS, LEVEL
from jostle.reporting.analysis.run_analysis import Progress, Survey, looked_at
from jostle.reporting.analysis.tables import Column, Table

MARK = "*"  # beside a difference whose interval leaves 0 out


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    Attributes:
        name: short, and not the other's.
        folder: where it lies.
        model: what ran.
        weights: fingerprint of its weights, None where nothing is known of them.
        mend: what said which frames were struck, so that what they touch was replaced; None where it was let be.
        truth: fingerprint of the ground truth that it was scored by.
        seed: of its corruptions.
        cells_alone: cells that the other run lacks, which are not compared.
        videos: how many it has looked at; those that the other has not are left out.
    """

    name: str
    folder: Path
    model: str
    weights: str | None
    mend: str | None
    truth: str
    seed: int
    cells_alone: tuple[str, ...]
    videos: int

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return vars(self) | {"folder": str(self.folder), "cells_alone": list(self.cells_alone)}


@dataclass(frozen=True)
class RunDiff:
    """The second of two runs less the first.

    Attributes:
        benchmark: that both are runs of.
        metric: that cells are measured by.
        videos: that both have looked at, and that everything is measured on; of runs on different data, the second's.
        videos_of: how many there are.
        classes: that they are of, where that is known.
        classes_of: how many there are.
        counted: cells that the means are over.
        counted_of: how many of the benchmark's cells count.
        paired: whether both are measured on the same videos; else each on its own.
        comparison: the differences, with intervals from drawing videos, the same for both if they are paired.
        draws: how many; 0 where there are no intervals.
        seed: of the draws.
        literature: what papers print of the benchmark, which was not measured here; None where they print nothing.
    """

    benchmark: str
    metric: str
    first: Side
    second: Side
    videos: int
    videos_of: int
    classes: int | None
    classes_of: int | None
    counted: int
    counted_of: int
    paired: bool
    comparison: Comparison
    draws: int
    seed: int
    literature: Literature | None

    @property
    def same_truth(self) -> bool:
        """Whether one ground truth has measured both."""
        return self.first.truth == self.second.truth

    @property
    def rows(self) -> tuple[Difference, ...]:
        """Clean, every shared cell, and the means where there are any."""
        means = (self.comparison.corrupted, self.comparison.relative) if self.counted else ()
        return (self.comparison.clean, *self.comparison.cells, *means)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has to be known to read the numbers."""
        said = []
        if not self.paired:
            kept = self._kept
            counts = f"{self.first.videos} and {self.second.videos} videos"
            said.append(f"the runs are on different data, {counts}, each measured on its own and drawn on its own")
            if kept is not None:
                said.append(
                    f"on its data {self.second.name} has {100 * kept:.1f} % of the clean score of {self.first.name}"
                )
        elif not self.same_truth:
            said.append("the runs were scored by different ground truths, each by its own: the difference is of both")
        for side in (self.first, self.second):
            if side.mend == "known":
                said.append(f"{side.name} was told which frames were struck: as well as mending could be done")
        for side in (self.first, self.second):
            if self.paired and side.videos > self.videos:
                said.append(
                    f"left out, as only {side.name} has looked at them: {side.videos - self.videos} of the videos"
                )
            if side.cells_alone:
                listed = ", ".join(side.cells_alone[:3]) + (", ..." if len(side.cells_alone) > 3 else "")
                said.append(f"left out, as only {side.name} has them: {len(side.cells_alone)} of the cells ({listed})")
        for side, guesses in zip((self.first, self.second), self.comparison.guesses, strict=True):
            if guesses:
                said.append(
                    f"{side.name} cannot be told from guessing on clean video: what is left of its score says nothing"
                )
        if 0 < self.counted < self.counted_of:
            said.append(f"the means are over {self.counted} of the benchmark's {self.counted_of} cells")
        if self.videos < self.videos_of:
            said.append(f"scored on {self.videos} of {self.videos_of} videos")
        if self.classes is not None and self.classes_of is not None and self.classes < self.classes_of:
            said.append(f"they are of {self.classes} of {self.classes_of} classes")
        if self.first.seed != self.second.seed:
            said.append(f"corruptions were drawn with seeds {self.first.seed} and {self.second.seed}: not the same")
        if self.draws and any(row.clear for row in self.rows):
            said.append(f"{MARK} the {100 * LEVEL:g} % interval leaves 0 out")
        return tuple(said)

    @property
    def _kept(self) -> float | None:
        """What the second's clean score is of the first's."""
        clean = self.comparison.clean
        return clean.other / clean.one if clean.one and clean.other is not None else None

    def table(self) -> Table:
        """One row a cell, then the means; what is clear is marked in the last column."""
        plain = comparison_table(self.comparison, self.first.name, self.second.name)
        kept = {row.what: row for row in self.rows}
        rows = tuple((*row, MARK if kept[str(row[0])].clear else "") for row in plain.rows if row[0] in kept)
        title = f"{self.benchmark}, {self.metric}: {self.second.name} less {self.first.name}"
        return Table(title, (*plain.columns, Column("")), rows)

    def to_frame(self) -> Any:
        """A pandas data frame: a row a cell and the means, fractions.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        told = [{"cell": row.what, **_told(row)} for row in self.rows]
        return data_frame({key: [row[key] for row in told] for key in told[0]})

    def _repr_html_(self) -> str:
        table = self.table()
        heads = [column.name for column in table.columns]
        return html_table(table.title, heads, table.texts(), notes=self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; values are fractions."""
        return {
            "format": 1,
            "benchmark": self.benchmark,
            "metric": self.metric,
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "same_truth": self.same_truth,
            "paired": self.paired,
            "coverage": {"videos": self.videos, "of": self.videos_of},
            "interval": {"level": LEVEL, "resamples": self.draws, "seed": self.seed} if self.draws else None,
            "clean": _told(self.comparison.clean),
            "mean_corrupted": _told(self.comparison.corrupted),
            "relative_robustness": _told(self.comparison.relative),
            "counted": {"cells": self.counted, "of": self.counted_of},
            "cells": [{"cell": row.what, **_told(row)} for row in self.comparison.cells],
            "published": self.literature and self.literature.to_dict(),
        }


def diff_runs(
    first: RunRecord,
    second: RunRecord,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    any_truth: bool = False,
    any_data: bool = False,
    progress: Progress | None = None,
) -> RunDiff:
    """Compare two runs on the videos and the cells that both have.

    Args:
        draws: of the videos, for the intervals; 0 for none.
        any_truth: also compare runs that were scored by different ground truths, each by its own.
        any_data: compare runs of one recipe on different data, each on its own videos.
        progress: called with (cells done, cells in all).

    Raises:
        Incomparable: if they are runs of different benchmarks, or of different ground truths.
    """
    records = (first, second)
    try:
        one, other = surveys_of(
            records, draws=draws, seed=seed, any_truth=any_truth, any_data=any_data, progress=progress
        )
    except Incomparable as error:
        if first.about.fingerprint == second.about.fingerprint:
            error.add_note("any_truth=True, on the command line --any-truth, compares them all the same")
        elif first.about.recipe == second.about.recipe:
            error.add_note("any_data=True, on the command line --any-data, compares one recipe on different data")
        raise
    names, covered = run_names(records), second.scores.coverage
    return RunDiff(
        benchmark=first.about.recipe if any_data else first.about.benchmark,
        metric=first.scores.metric,
        first=_side(names[0], one, other),
        second=_side(names[1], other, one),
        videos=len(other.videos),
        videos_of=covered.of if any_data else max(record.scores.coverage.of for record in records),
        classes=covered.classes,
        classes_of=covered.of_classes,
        counted=len(set(one.counted) & set(other.counted)),
        counted_of=sum(one.counted for one in first.about.content.cells),
        paired=not any_data,
        comparison=compared(one, other, paired=not any_data),
        draws=len(one.drawn),
        seed=seed,
        literature=literature_on(records),
    )


def _side(name: str, own: Survey, other: Survey) -> Side:
    about = own.record.about
    return Side(
        name=name,
        folder=own.record.folder,
        model=about.model,
        weights=about.weights,
        mend=about.mend,
        truth=about.truth,
        seed=about.seed,
        cells_alone=tuple(cell for cell in own.cells if cell not in other.place),
        videos=len(looked_at(own.record)),
    )


def _told(row: Difference) -> dict[str, Any]:
    ends = row.difference.interval
    return {
        "first": row.one,
        "second": row.other,
        "difference": row.difference.value,
        "interval": None if ends is None else list(ends),
        "clear": row.clear,
        "share_below": row.share_below,
    }
