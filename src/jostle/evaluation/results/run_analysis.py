"""Analysis of a run: scores by cell, class and video, what corruption costs each, and intervals of all that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jostle.core.types.columns import Floats
from jostle.errors import BadValue, DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import measured_cell
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.bootstrap import bias_corrected, unseen_weights, video_weights, warn_of_few
from jostle.metrics.proportion import clopper_pearson

LEVEL = 0.95
DRAWS = 1000


@dataclass(frozen=True)
class Estimate:
    """A number, and where it would lie with other videos."""

    value: float | None  # None where it has no meaning, as a ratio to a clean score of 0
    interval: tuple[float, float] | None = None  # (low, high), None where it cannot be had


def estimate(measured: float | None, drawn: Floats, level: float = LEVEL) -> Estimate:
    """A number with its interval from what it is in each draw; a draw in which it has no meaning is left out."""
    if measured is None or not np.isfinite(measured):
        return Estimate(None)
    known = drawn[np.isfinite(drawn)]
    return Estimate(float(measured), bias_corrected(known, float(measured), level) if len(known) > 1 else None)


Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class RunAnalysis:
    """Analysis of a run: the scores of every cell, by class and by video."""

    record: RunRecord  # the run
    cells: tuple[str, ...]  # those that have predictions, the clean one first
    videos: tuple[str, ...]  # those that count
    classes: tuple[str, ...]  # the names of `by_class`
    value: Floats  # (cells,) fractions
    by_class: Floats  # (cells, classes); NaN for a class without an instance
    by_video: Floats  # (cells, videos) the value of each video alone; NaN where nothing is annotated
    # (draws, cells) values in draws of the videos; the same draws for all cells, and for any other run on the same
    # videos
    drawn: Floats
    # (videos,) number of answers of each, where the value of a cell is the share of right ones; else None
    answers: Floats | None = None
    # (draws, cells) values in the same draws with one more video, which nobody has seen, at its worst, and at its best;
    # None unless they were requested
    ends: tuple[Floats, Floats] | None = None

    @cached_property
    def place(self) -> dict[str, int]:
        """Index of each cell in the tables."""
        return {cell: i for i, cell in enumerate(self.cells)}

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """Cells that the means are over."""
        known = set(self.record.counted)
        return tuple(cell for cell in self.cells if cell in known)

    def columns(self, cells: Sequence[str] | None = None) -> list[int]:
        """Return the indices of these cells; by default of those that count."""
        return [self.place[cell] for cell in (self.counted if cells is None else cells)]

    @property
    def trials(self) -> int | None:
        """Number of independent answers, where each video that has any has one; else None."""
        if self.answers is None or self.answers.max() > 1:
            return None
        return int(self.answers.sum())

    def of(self, cell: str) -> Estimate:
        """The value of a cell.

        Its interval is that of scores.json: exact where each video has one answer, or all answers are alike, else from
        draws of the videos.
        """
        value = float(self.value[self.place[cell]])
        if self.answers is not None and len(self.drawn) and (self.trials is not None or value in (0.0, 1.0)):
            units = int(np.count_nonzero(self.answers))
            return Estimate(value, clopper_pearson(round(value * units), units))
        return estimate(value, self.drawn[:, self.place[cell]])

    @property
    def interval_text(self) -> str:
        """What the intervals are, in words; empty where there are none."""
        draws = len(self.drawn)
        if not draws:
            return ""
        few = " They are too narrow, as videos are few." if warn_of_few(len(self.videos)) else ""
        drawn = f"from {draws} draws of the videos, bias-corrected"
        if self.answers is None:
            return f"Intervals are {100 * LEVEL:g} %, {drawn}.{few}"
        items = self.record.metric.mean_over or "items"
        if self.trials is None:
            return f"Intervals are {100 * LEVEL:g} %, {drawn}; a video is drawn with all its {items}.{few}"
        unit = "video" if items == "videos" else f"{items[:-1]}, each of a video of its own,"
        return (
            f"Intervals are {100 * LEVEL:g} %: of a single cell exact (Clopper and Pearson), as each {unit} is one "
            f"answer; of means, ratios and differences {drawn}.{few}"
        )

    def corrupted(self, cells: Sequence[str] | None = None) -> Estimate:
        """The mean over cells; by default those that count. It has no value where there is none."""
        at = self.columns(cells)
        return estimate(self.value[at].mean(), self.drawn[:, at].mean(axis=1)) if at else Estimate(None)

    def relative(self, cells: Sequence[str] | None = None) -> Estimate:
        """The mean over cells of what is left of the clean value; it has no value where that is 0."""
        at = self.columns(cells)
        clean = self.value[self.place[CLEAN]]
        if not at or not clean > 0:
            return Estimate(None)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = (self.drawn[:, at] / self.drawn[:, [self.place[CLEAN]]]).mean(axis=1)
        return estimate((self.value[at] / clean).mean(), drawn)


def analyse_run(
    record: RunRecord,
    *,
    videos: Sequence[str] | None = None,
    draws: int = 0,
    seed: int = 0,
    unseen: bool = False,
    progress: Progress | None = None,
) -> RunAnalysis:
    """Go over the cells of a run.

    Args:
        videos: only these; by default all processed videos.
        draws: how many draws of the videos, for intervals; 0 for none.
        unseen: the draws are those of `unseen_weights`, with `ends`.
        progress: called with (cells done, cells in all).

    Raises:
        DataError: if there is nothing to go over.
    """
    own = processed_videos(record)
    chosen = own if videos is None else tuple(videos)
    if not chosen:
        raise DataError(f"{record.folder}: no video was looked at")
    weights = unseen_weights(chosen, draws, seed) if unseen else video_weights(chosen, draws, seed)
    whole = set(chosen) == set(own)
    measures = []
    for cell in record.cells:
        measure = measured_cell(record, cell, chosen, weights)
        if whole and np.isnan(measure.value):  # a metric of a plugin that is not here, which only the run itself had
            measure = replace(measure, value=record.values.get(cell, np.nan))
        measures.append(measure)
        if progress is not None:
            progress(len(measures), len(record.cells))
    ends = [measure.ends for measure in measures if measure.ends is not None]
    worst, best = zip(*ends, strict=True) if len(ends) == len(measures) else ((), ())
    return RunAnalysis(
        record=record,
        cells=record.cells,
        videos=chosen,
        classes=record.classes,
        value=np.array([measure.value for measure in measures]),
        by_class=np.stack([measure.by_class for measure in measures]),
        by_video=np.stack([measure.by_video for measure in measures]),
        drawn=np.stack([measure.drawn for measure in measures], axis=1),  # none where the metric has no draws
        answers=measures[0].answers,
        ends=(np.stack(worst, axis=1), np.stack(best, axis=1)) if worst else None,
    )


def processed_videos(record: RunRecord) -> tuple[str, ...]:
    """The videos of the clean cell; raises DataError if its predictions are gone."""
    if CLEAN not in record.cells:
        raise DataError(
            f"{record.folder}: the predictions on clean video are gone; the same `jostle run` makes them again"
        )
    return tuple(record.task.videos_of(record.predictions(CLEAN)))


@dataclass(frozen=True)
class Drop:
    """Score drop of one class or one video."""

    name: str  # of the class or the video
    clean: float  # its value on clean video
    corrupted: float  # the mean over the given cells
    worst_cell: str  # the cell in which it is worth least, or "" outside of runs
    worst: float  # its value there

    @property
    def loss(self) -> float:
        """Clean less corrupted; negative where corruption helps."""
        return self.clean - self.corrupted


def drops_between(clean: Mapping[str, float], corrupted: Mapping[str, float]) -> list[Drop]:
    """Return the drops of the same classes from one score to another, the greatest first.

    Raises:
        BadValue: for a class that one of them does not have.
    """
    if missing := sorted(set(clean) ^ set(corrupted)):
        raise BadValue(f"both scores need the same classes; {missing[0]!r} is in one of them only")
    drops = [Drop(name, value, corrupted[name], "", corrupted[name]) for name, value in clean.items()]
    return _greatest_first(drops)


def _greatest_first(drops: list[Drop]) -> list[Drop]:
    return sorted(drops, key=lambda drop: (-drop.loss, drop.name))


LEAST_LOSS = 0.00005  # what prints as 0.01 points


def losing(drops: Sequence[Drop]) -> list[Drop]:
    """Return those that lose something, for lists of the largest drops."""
    return [drop for drop in drops if drop.loss >= LEAST_LOSS]


def class_drops(analysis: RunAnalysis, cells: Sequence[str] | None = None) -> list[Drop]:
    """Every class with an instance, the greatest loss first, as a mean over cells; by default those that count."""
    return _drops(analysis, analysis.classes, analysis.by_class, cells)


def video_drops(analysis: RunAnalysis, cells: Sequence[str] | None = None) -> list[Drop]:
    """Every video with an annotation, the greatest loss first; values are of each video by itself."""
    return _drops(analysis, analysis.videos, analysis.by_video, cells)


def _drops(analysis: RunAnalysis, names: Sequence[str], table: Floats, cells: Sequence[str] | None) -> list[Drop]:
    at = analysis.columns(cells)
    if not at:
        return []
    clean, scores = table[analysis.place[CLEAN]], table[at]
    drops = []
    for i, name in enumerate(names):
        if not (np.isfinite(clean[i]) and np.isfinite(scores[:, i]).all()):
            continue
        worst = int(np.argmin(scores[:, i]))
        cell = analysis.cells[at[worst]]
        drops.append(Drop(name, float(clean[i]), float(scores[:, i].mean()), cell, float(scores[worst, i])))
    return _greatest_first(drops)
