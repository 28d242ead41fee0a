"""Two runs of one benchmark, cell by cell: what the second has over the first, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.results import Result, plain
from jostle.core.tables import MARK, Column, Table, data_frame
from jostle.errors import Incomparable
from jostle.evaluation.results.comparison import (
    Difference,
    RunComparison,
    analyse_runs,
    chance_of,
    compared,
    condition_differences,
)
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import DRAWS, LEVEL, Progress, RunAnalysis, processed_videos
from jostle.evaluation.run_folder.metadata import RunFacts, format_adaptation
from jostle.evaluation.run_folder.scores import BASELINES
from jostle.metrics.bootstrap import warn_of_few
from jostle.reporting.analysis.cell_tables import comparison_table
from jostle.reporting.analysis.group_drops import GroupDrop, group_drops, read_groups
from jostle.reporting.analysis.labels import run_names
from jostle.reporting.analysis.language import baselines_of
from jostle.reporting.analysis.literature import Literature, literature_on
from jostle.reporting.analysis.verdict import describe_clean_difference, percent


@dataclass(frozen=True)
class RunSide:
    """One of the two runs."""

    name: str  # short, and not the other's
    folder: Path  # where it lies
    facts: RunFacts  # what decided its results
    cells_alone: tuple[str, ...]  # cells that the other run lacks, which are not compared
    videos: int  # number of processed videos; those that the other run lacks are left out
    # Clean scores with less than the video, by name; of runs of questions and moments
    baselines: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the side as plain values for JSON."""
        facts = self.facts
        return {
            "name": self.name,
            "folder": str(self.folder),
            "model": facts.model,
            "weights": facts.weights,
            "mend": facts.mend,
            "adapt": format_adaptation(facts.adapt),
            "truth": facts.truth,
            "seed": facts.seed,
            "cells_alone": list(self.cells_alone),
            "videos": self.videos,
            "baselines": self.baselines,
        }


@dataclass(frozen=True)
class RunDiff(Result):
    """The second of two runs less the first."""

    benchmark: str  # that both are runs of
    metric: str  # that cells are measured by
    first: RunSide
    second: RunSide
    videos: int  # number of videos common to both, on which scores are computed; on different data, the second's
    videos_of: int  # how many there are
    classes: int | None  # that they are of, where that is known
    classes_of: int | None  # how many there are
    counted: int  # cells that the means are over
    counted_of: int  # how many of the benchmark's cells count
    paired: bool  # whether both are measured on the same videos; else each on its own
    # the differences, with intervals from drawing videos, the same for both if they are paired
    comparison: RunComparison
    draws: int  # how many; 0 where there are no intervals
    seed: int  # of the draws
    # what papers print of the benchmark, which was not measured here; None where they print nothing, or where the runs
    # cannot be held against it
    literature: Literature | None
    literature_left_out: str = ""  # why published figures are left out, in a sentence
    chance: float | None = None  # the score of guesses on clean video; None where no answers are counted
    groups: tuple[GroupDrop, ...] = ()  # clean accuracy by group of the second run's videos, where groups were given
    conditions: tuple[str, ...] = ()  # what differs between the conditions of the runs, with both sides

    @property
    def same_truth(self) -> bool:
        """Whether both runs were scored against the same ground truth."""
        return self.first.facts.truth == self.second.facts.truth

    @property
    def rows(self) -> tuple[Difference, ...]:
        """Clean, every shared cell, and the means where there are any."""
        means = (self.comparison.corrupted, self.comparison.relative) if self.counted else ()
        return (self.comparison.clean, *self.comparison.cells, *means)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks needed to read the numbers."""
        remarks = []
        if not self.paired:
            ratio = self._kept
            counts = f"{self.first.videos} and {self.second.videos} videos"
            remarks.append(f"the runs are on different data, {counts}, each measured on its own and drawn on its own")
            if ratio is not None:
                remarks.append(
                    f"on its data {self.second.name} has {100 * ratio:.1f} % of the clean score of {self.first.name}"
                )
        elif not self.same_truth:
            remarks.append(
                "the runs were scored by different ground truths, each by its own: the difference is of both"
            )
        for side in (self.first, self.second):
            if side.facts.mend == "known":
                remarks.append(f"{side.name} was mended with the damaged frames known (oracle)")
        for side in (self.first, self.second):
            if self.paired and side.videos > self.videos:
                remarks.append(
                    f"left out, as only {side.name} has processed them: {side.videos - self.videos} of the videos"
                )
            if side.cells_alone:
                listed = ", ".join(side.cells_alone[:3]) + (", ..." if len(side.cells_alone) > 3 else "")
                remarks.append(
                    f"left out, as only {side.name} has them: {len(side.cells_alone)} of the cells ({listed})"
                )
        for side, guesses in zip((self.first, self.second), self.comparison.guesses, strict=True):
            if guesses:
                remarks.append(
                    f"{side.name} is not significantly better than chance on clean video: "
                    "its relative robustness has no meaning"
                )
        if self.counted and not self.comparison.relative_comparable and not any(self.comparison.guesses):
            remarks.append(describe_clean_difference(self.comparison))
        if self.chance:
            remarks.append(f"chance level is {percent(self.chance)} %")
        for side in (self.first, self.second):
            if side.baselines:
                levels = ", ".join(f"{BASELINES[name]} {percent(value)}" for name, value in side.baselines.items())
                remarks.append(f"clean scores of {side.name} with less than the video: {levels}")
        if 0 < self.counted < self.counted_of:
            remarks.append(f"the means are over {self.counted} of the benchmark's {self.counted_of} cells")
        if self.videos < self.videos_of:
            remarks.append(f"scored on {self.videos} of {self.videos_of} videos")
        if self.classes is not None and self.classes_of is not None and self.classes < self.classes_of:
            remarks.append(f"they are of {self.classes} of {self.classes_of} classes")
        remarks += self.conditions
        if self.draws and (few := warn_of_few(self.videos)):
            remarks.append(few)
        if self.literature_left_out:
            remarks.append(f"published figures are left out: {self.literature_left_out}")
        if self.draws and any(row.clear for row in self.rows):
            remarks.append(f"{MARK} significant: the {100 * LEVEL:g} % interval excludes 0")
        return tuple(remarks)

    @property
    def _kept(self) -> float | None:
        """Return the ratio of the second clean score to the first."""
        clean = self.comparison.clean
        return clean.other / clean.one if clean.one and clean.other is not None else None

    def notes(self) -> tuple[str, ...]:
        """Return the remarks."""
        return self.remarks

    def tables(self) -> tuple[Table, ...]:
        """Return the cells and the means; then the groups, and what papers print, where there are any."""
        plain_table = comparison_table(self.comparison, self.first.name, self.second.name)
        rows_by_name = {row.what: row for row in self.rows}
        marked = {row.what for row in self.rows if row.clear}
        if not self.comparison.relative_comparable:
            marked.discard(self.comparison.relative.what)
        rows = tuple((*row, row[0] in marked) for row in plain_table.rows if row[0] in rows_by_name)
        about = f"{self.benchmark}, {self.metric}, {self.videos} videos: {self.second.name} less {self.first.name}"
        cells = Table(about, (*plain_table.columns, Column("", "mark", key="significant")), rows)
        groups = (self._group_table(),) if self.groups else ()
        return (cells, *groups, *(() if self.literature is None else self.literature.tables()))

    def _group_table(self) -> Table:
        """One row a group, with intervals over classes."""
        counts = tuple(Column(name, "count") for name in ("videos", "classes"))
        accuracies = tuple(Column(side.name, "percent") for side in (self.first, self.second))
        gaps = (Column("difference", "points"), Column("95 %, over classes", "interval"))
        rows = tuple(
            (one.group, one.videos, one.classes, one.first, one.second, one.difference, one.interval)
            for one in self.groups
        )
        return Table("By group", (Column("group"), *counts, *accuracies, *gaps), rows)

    def to_frame(self) -> Any:
        """A pandas data frame: a row a cell and the means, fractions.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        rows = [{"cell": row.what, **_difference_to_dict(row)} for row in self.rows]
        return data_frame({key: [row[key] for row in rows] for key in rows[0]})

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
            "clean": _difference_to_dict(self.comparison.clean),
            "mean_corrupted": _difference_to_dict(self.comparison.corrupted),
            "relative_robustness": _difference_to_dict(self.comparison.relative),
            "relative_comparable": self.comparison.relative_comparable,
            "chance": self.chance,
            "counted": {"cells": self.counted, "of": self.counted_of},
            "rows": [{"what": row.what, **_difference_to_dict(row)} for row in self.rows],
            "remarks": list(self.remarks),
            "cells": [{"cell": row.what, **_difference_to_dict(row)} for row in self.comparison.cells],
            "published": plain(self.literature),
            "groups": plain(self.groups),
        }


def diff_runs(
    first: RunRecord,
    second: RunRecord,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    any_truth: bool = False,
    any_data: bool = False,
    by: str | Path | None = None,
    progress: Progress | None = None,
) -> RunDiff:
    """Compare two runs on the videos and the cells that both have.

    Args:
        draws: of the videos, for the intervals; 0 for none.
        any_truth: also compare runs that were scored by different ground truths, each by its own.
        any_data: compare runs of one recipe on different data, each on its own videos.
        by: CSV file with the groups of the second run's videos, for `RunDiff.groups`; see `read_groups`.
        progress: called with (cells done, cells in all).

    Raises:
        Incomparable: if they are runs of different benchmarks, or of different ground truths.
    """
    records = (first, second)
    try:
        one, other = analyse_runs(
            records, draws=draws, seed=seed, any_truth=any_truth, any_data=any_data, progress=progress
        )
    except Incomparable as error:
        if first.about.fingerprint == second.about.fingerprint:
            error.add_note("any_truth=True, on the command line --any-truth, compares them all the same")
        elif first.about.recipe == second.about.recipe:
            error.add_note("any_data=True, on the command line --any-data, compares one recipe on different data")
        raise
    names, covered = run_names(records), second.scores.coverage
    literature = literature_on(records)
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
        literature=literature if literature is not None and literature.comparable else None,
        literature_left_out="" if literature is None or literature.comparable else literature.remarks[0],
        chance=chance_of(other).score or None,
        groups=() if by is None else group_drops(first, second, read_groups(by), draws=draws, seed=seed),
        conditions=tuple(condition_differences(first, second)),
    )


def _side(name: str, own: RunAnalysis, other: RunAnalysis) -> RunSide:
    return RunSide(
        name=name,
        folder=own.record.folder,
        facts=own.record.about.facts,
        cells_alone=tuple(cell for cell in own.cells if cell not in other.place),
        videos=len(processed_videos(own.record)),
        baselines={one.key: value for one in baselines_of(own.record) if (value := one.score.score) is not None},
    )


def _difference_to_dict(row: Difference) -> dict[str, Any]:
    ends = row.difference.interval
    return {
        "first": row.one,
        "second": row.other,
        "difference": row.difference.value,
        "interval": None if ends is None else list(ends),
        "clear": row.clear,
        "share_below": row.share_below,
    }
