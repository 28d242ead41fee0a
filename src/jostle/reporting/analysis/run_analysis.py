"""One pass over the cells of a run: what each is worth, by class and by video, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jostle.core.types.columns import Floats
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.bootstrap import video_weights
from jostle.reporting.analysis.cell_scores import classes_of, measured_cell
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.resampling import Estimate, estimate

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class RunAnalysis:
    """Analysis of a run: the scores of every cell, by class and by video.

    Attributes:
        record: the run.
        cells: those that have predictions, the clean one first.
        videos: those that count.
        classes: the names of `by_class`.
        value: (cells,) fractions.
        by_class: (cells, classes); NaN for a class without an instance.
        by_video: (cells, videos) the value of each video alone; NaN where nothing is annotated.
        drawn: (draws, cells) values in draws of the videos; the same draws for all cells, and for any other run on the
            same videos.
    """

    record: RunRecord
    cells: tuple[str, ...]
    videos: tuple[str, ...]
    classes: tuple[str, ...]
    value: Floats
    by_class: Floats
    by_video: Floats
    drawn: Floats

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

    def of(self, cell: str) -> Estimate:
        """The value of a cell."""
        return estimate(self.value[self.place[cell]], self.drawn[:, self.place[cell]])

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


def survey(
    record: RunRecord,
    *,
    videos: Sequence[str] | None = None,
    draws: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> RunAnalysis:
    """Go over the cells of a run.

    Args:
        videos: only these; by default all processed videos.
        draws: how many draws of the videos, for intervals; 0 for none.
        progress: called with (cells done, cells in all).

    Raises:
        DataError: if there is nothing to go over.
    """
    own = processed_videos(record)
    chosen = own if videos is None else tuple(videos)
    if not chosen:
        raise DataError(f"{record.folder}: no video was looked at")
    weights = video_weights(chosen, draws, seed)
    whole = set(chosen) == set(own)
    measures = []
    for cell in record.cells:
        measure = measured_cell(record, cell, chosen, weights)
        if whole and np.isnan(measure.value):  # a metric of all videos together, which only the run itself has taken
            measure = replace(measure, value=record.values.get(cell, np.nan))
        measures.append(measure)
        if progress is not None:
            progress(len(measures), len(record.cells))
    return RunAnalysis(
        record=record,
        cells=record.cells,
        videos=chosen,
        classes=classes_of(record),
        value=np.array([measure.value for measure in measures]),
        by_class=np.stack([measure.by_class for measure in measures]),
        by_video=np.stack([measure.by_video for measure in measures]),
        drawn=np.stack([measure.drawn for measure in measures], axis=1),  # none where the metric has no draws
    )


def processed_videos(record: RunRecord) -> tuple[str, ...]:
    """The videos of the clean cell.

    Raises:
        DataError: if its predictions are gone.
    """
    if CLEAN not in record.cells:
        raise DataError(
            f"{record.folder}: the predictions on clean video are gone; the same `jostle run` makes them again"
        )
    if record.task == "detection":
        return record.truth.videos
    names = list(record.boxes(CLEAN)[0]) if record.task == "objects" else record.table(CLEAN)[0]
    if record.task in ("frames", "objects"):
        return tuple(dict.fromkeys(name.rpartition("/")[0] for name in names))
    return tuple(names)
