"""A finished run with its diagnosis, read from its folder: needs neither the data set nor the model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.schema import Mismatch, Share, parse
from jostle.core.types.clip import check_rate
from jostle.errors import DataError, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN, slugify
from jostle.evaluation.run_folder.folder import RunFolder, run_folder
from jostle.evaluation.run_folder.journal import (
    Event,
    VideoFailed,
    VideoKept,
    WorkDone,
    check_regular_file,
    read_events,
)
from jostle.evaluation.run_folder.metadata import About
from jostle.evaluation.run_folder.scores import Scores
from jostle.evaluation.tasks.task import Task, tasks
from jostle.evaluation.tasks.views import VideoView
from jostle.io.files.ledger import read_lines
from jostle.io.files.records import read_record
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS, SPLITS
from jostle.metrics.metric import Metric, find_metric

Numbers = dict[str, float | None]
Buckets = Mapping[str, Mapping[str, float | None]]  # by characteristic and bucket


@dataclass(frozen=True)
class StoredFalsePositives:
    """Predictions by kind: shares in each split of the most confident, counts, and what each kind of error costs."""

    profile: tuple[Numbers, ...]
    totals: Numbers
    impact: Numbers

    def __post_init__(self) -> None:
        if len(self.profile) != SPLITS:
            raise Mismatch(f"has {len(self.profile)} splits, not {SPLITS}").under("profile")
        for split in self.profile:
            _refuse_without(ERROR_KINDS, split, "profile")
            for kind in ERROR_KINDS:
                if not 0 <= (split[kind] or 0.0) <= 1:
                    raise Mismatch(f"has {split[kind]:g}, not a share").under(kind).under("profile")
        _refuse_without(ERROR_KINDS, self.totals, "totals")
        _refuse_without(ERRORS, self.impact, "impact")


@dataclass(frozen=True)
class CellDiagnosis:
    """Why a detector fails in one cell; `Diagnosis` says what each number means."""

    false_positives: StoredFalsePositives
    sensitivity: dict[str, Numbers | float | None]
    false_negatives: dict[str, dict[str, Numbers | float | None] | float | None]

    def __post_init__(self) -> None:
        _refuse_without(("base",), self.sensitivity, "sensitivity")
        _refuse_without(("overall",), self.false_negatives, "false_negatives")
        for name, value in (("base", self.sensitivity["base"]), ("overall", self.false_negatives["overall"])):
            if isinstance(value, dict):
                raise Mismatch(f"has an object under {name!r}, not a number")

    @property
    def base(self) -> float | None:
        """Average normalised mAP (mAP_N) of the cell."""
        value = self.sensitivity["base"]
        return value if isinstance(value, float) else None

    @property
    def missed(self) -> float | None:
        """Share of actions that no detection finds."""
        value = self.false_negatives["overall"]
        return value if isinstance(value, float) else None

    @property
    def by_bucket(self) -> Buckets:
        """Average mAP_N by characteristic and bucket; None for an empty one."""
        return {name: value for name, value in self.sensitivity.items() if isinstance(value, dict)}

    @property
    def missed_by_bucket(self) -> Buckets:
        """Share of actions missed, by the same buckets."""
        return {name: _plain_numbers(self.false_negatives.get(name)) for name in self.by_bucket}


@dataclass(frozen=True)
class StoredDiagnosis(CellDiagnosis):
    """Content of diagnosis.json: the diagnosis of the clean cell, and under `cells` those of the others."""

    style: str
    tious: tuple[Share, ...]
    cells: dict[str, CellDiagnosis | None] = field(kw_only=True)  # None for a cell where nothing was found


def _refuse_without(keys: Sequence[str], content: Mapping[str, object], under: str) -> None:
    for name in keys:
        if name not in content:
            raise Mismatch("is missing").under(name).under(under)


def _plain_numbers(content: object) -> Numbers:
    inner = content if isinstance(content, dict) else {}
    return {bucket: value for bucket, value in inner.items() if not isinstance(value, dict)}


_SCORES_ANEW = "the same `jostle run` goes on and writes it anew"


@dataclass(frozen=True)
class RunRecord:
    """Content of a run folder; parts are read on first access and cached."""

    folder: Path  # of the run
    about: About  # what ran
    scores: Scores  # what its predictions are worth

    @classmethod
    def read(cls, path: str | Path) -> RunRecord:
        """The run in a folder; a file of a run, such as its scores.json, means the run it lies in.

        Raises:
            DataError: if there is none, it is damaged, or it has no scores yet.
        """
        folder = RunFolder(run_folder(Path(path)))
        about, scores = folder.read_about(), folder.read_scores()
        for one in scores.listed:
            if about.content.cell(one.cell) is None or one.cell == CLEAN:
                raise DataError(
                    f"{folder.scores}: has {one.cell!r}, which is no corrupted cell of {folder.about}; {_SCORES_ANEW}",
                    fault="F110",
                )
        needed = find_metric(about.content.metric).recorded
        if needed and None in (getattr(one, needed) for one in (scores.clean_more, *scores.listed)):
            raise DataError(f"{folder.scores}: a cell has no {needed}; {_SCORES_ANEW}", fault="F110")
        return cls(folder.path, about, scores)

    @cached_property
    def task(self) -> Task[Any, Any]:
        """Task of the benchmark, with the annotations of the run."""
        about = self.about
        return tasks[about.content.task].of_file(
            about.content, RunFolder(self.folder).truth, about.classes, about.missing
        )

    @property
    def metric(self) -> Metric:
        """Metric of the benchmark; one that nothing is known of but its name if its plugin is not here."""
        return find_metric(self.about.content.metric)

    @property
    def annotations(self) -> Any:
        """Annotations of all videos, as the metric takes them."""
        return self.task.annotations

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names that scores are broken down by, such as the classes of a detector or the types of questions."""
        return self.metric.classes(self.annotations)

    @property
    def name(self) -> str:
        """Name of the model, with the folder to distinguish several runs of it."""
        return f"{self.about.display_name} ({self.folder.name})"

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Cells that have predictions, in the benchmark's order, the clean one first."""
        return tuple(one.cell for one in self.about.content.cells if self.predictions_file(one.cell).exists())

    @cached_property
    def values(self) -> dict[str, float]:
        """The value of each scored cell, a fraction."""
        return {CLEAN: self.scores.clean} | {one.cell: one.value for one in self.scores.listed}

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """Cells that the means are over."""
        return tuple(one.cell for one in self.scores.cells)

    @cached_property
    def diagnosis(self) -> StoredDiagnosis | None:
        """Why a detector fails, clean, and under `cells` in every other cell; None for other tasks."""
        path = RunFolder(self.folder).diagnosis
        return read_record(StoredDiagnosis, path, _SCORES_ANEW) if os.path.lexists(path) else None

    @cached_property
    def failures(self) -> tuple[VideoFailed, ...]:
        """Videos that could not be used."""
        path = RunFolder(self.folder).failures
        return tuple(read_lines(path, partial(parse, VideoFailed), "refuse", _SCORES_ANEW, "F110"))

    @cached_property
    def sources(self) -> dict[str, Path]:
        """Path of each video when it was processed; the file may be gone."""
        return {video: Path(event.path) for video, event in self._kept.items()}

    @cached_property
    def rates(self) -> dict[str, Fraction]:
        """The rate of each folder of images that something outside of it gave it."""
        return {video: check_rate(event.fps) for video, event in self._kept.items() if event.fps is not None}

    def input_frames(self, video: str) -> npt.NDArray[np.int64] | None:
        """Return the frame indices that were the model's input, or None if all were, or in older runs.

        Raises:
            DataError: if the journal has something else there.
        """
        events = [event.shown for event in self._portions[video] if event.shown is not None]
        try:
            numbers = [int(number) for one in events for number in one.split()]
            return np.unique(np.array(numbers, np.int64)) if numbers and min(numbers) >= 0 else None
        except (ValueError, OverflowError):
            raise DataError(f"{RunFolder(self.folder).journal}: input frames of {video} are no numbers") from None

    def found_struck(self, video: str, cell: str) -> tuple[tuple[int, int], ...] | None:
        """Return the stretches of frames found damaged in a cell, or None if nothing was mended."""
        events = [event.mended for event in self._portions.get(video, ()) if event.mended is not None]
        return next((one[cell].found for one in events if cell in one), None)

    @property
    def work(self) -> tuple[WorkDone, ...]:
        """Time spent by stage, for each time the run was started or resumed; older runs have none."""
        return tuple(event for event in self._events if isinstance(event, WorkDone))

    @cached_property
    def _events(self) -> list[Event]:
        return list(read_events(RunFolder(self.folder).journal))

    @property
    def _kept(self) -> dict[str, VideoKept]:
        return {video: portions[-1] for video, portions in self._portions.items()}

    @cached_property
    def _portions(self) -> dict[str, list[VideoKept]]:
        """Last journal entry of each portion of each video; most videos are one portion."""
        last = {(event.video, event.portion): event for event in self._events if isinstance(event, VideoKept)}
        portions: dict[str, list[VideoKept]] = {}
        for (video, _), event in last.items():
            portions.setdefault(video, []).append(event)
        return portions

    def predictions(self, cell: str) -> Any:
        """Return the predictions of a cell, as the metric takes them."""
        path = self.predictions_file(cell)
        check_regular_file(path)
        return self.task.read_predictions(path)

    def view(self, video: str, cell: str, *, tiou: float | None = None, brief: bool = False) -> VideoView | None:
        """Return a video clean and under a cell, to be drawn; None where nothing can be drawn.

        Args:
            tiou: overlap from which something in time is right; by default the benchmark's.
            brief: for a report, which has room for the most confident predictions only.

        Raises:
            UnknownName: if the run has no such video or cell.
        """
        if video not in self.task.videos:
            raise UnknownName("video", video, self.task.videos)
        clean = self.predictions(CLEAN)
        corrupted = clean if cell == CLEAN else self.predictions(cell)
        return self.task.view(video, clean, corrupted, tiou=tiou, brief=brief)

    def predictions_file(self, cell: str) -> Path:
        """Return the path of the predictions of a cell."""
        if self.about.content.cell(cell) is None:
            raise UnknownName(f"cell of {self.folder}", cell, [one.cell for one in self.about.content.cells])
        return RunFolder(self.folder, self.task.suffix).predictions_of(slugify(cell))
