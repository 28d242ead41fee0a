"""A finished run with its diagnosis, read from its folder: needs neither the data set nor the model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.boxes import Boxes
from jostle.core.types.clip import check_rate
from jostle.core.types.frame_sets import BoxSets, FrameSets
from jostle.core.types.language import AnswerSet, MomentPredictions, MomentSet, QuestionSet
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError, JostleError, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN, slugify
from jostle.evaluation.run_folder.annotations import (
    ActionSpans,
    BoxedFrames,
    DescribedVideos,
    LabelledFrames,
    LabelledVideos,
    QuestionedVideos,
)
from jostle.evaluation.run_folder.folder import RunFolder, run_folder
from jostle.evaluation.run_folder.journal import (
    Event,
    VideoFailed,
    VideoKept,
    WorkDone,
    check_regular_file,
    read_events,
)
from jostle.evaluation.run_folder.metadata import About, Task
from jostle.evaluation.run_folder.scores import Scores
from jostle.evaluation.tasks.language import refusing_rows
from jostle.evaluation.tasks.moments import parse_windows
from jostle.evaluation.tasks.questions import parse_answer
from jostle.evaluation.tasks.score_tables import read_table
from jostle.evaluation.tasks.task import segments_from_pairs
from jostle.io.files.annotations import read_predictions, read_truth
from jostle.io.files.ledger import read_lines
from jostle.io.files.records import Share, ValidationError, parse_record, read_record
from jostle.io.files.text import read_json
from jostle.io.formats.boxes import read_boxes
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS
from jostle.metrics.metric import Metric, find_metric
from jostle.metrics.protocol import Protocol, protocols

Numbers = dict[str, float | None]
Buckets = Mapping[str, Mapping[str, float | None]]  # by characteristic and bucket


@dataclass(frozen=True)
class StoredFalsePositives:
    """Predictions by kind: shares in each split of the most confident, counts, and what each kind of error costs."""

    profile: tuple[Numbers, ...]
    totals: Numbers
    impact: Numbers

    def __post_init__(self) -> None:
        if not self.profile:
            raise ValidationError("is empty").under("profile")
        _refuse_without(ERROR_KINDS, self.profile[0], "profile")
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
                raise ValidationError(f"has an object under {name!r}, not a number")

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
            raise ValidationError("is missing").under(name).under(under)


def _plain_numbers(content: object) -> Numbers:
    inner = content if isinstance(content, dict) else {}
    return {bucket: value for bucket, value in inner.items() if not isinstance(value, dict)}


_SCORES_ANEW = "the same `jostle run` goes on and writes it anew"
_TRUTH_ANEW = "delete it, and the same `jostle run` writes it anew"


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

    @property
    def task(self) -> Task:
        """Task of the benchmark."""
        return self.about.content.task

    @property
    def metric(self) -> Metric:
        """Metric of the benchmark; one that nothing is known of but its name if its plugin is not here."""
        return find_metric(self.about.content.metric)

    @property
    def annotations(self) -> Any:
        """Annotations that the metric measures by; those of detection are of the processed videos only."""
        parts: dict[str, Callable[[], Any]] = {
            "detection": lambda: self.truth,
            "recognition": lambda: self.labels,
            "frames": lambda: self.frames,
            "objects": lambda: self.objects,
            "questions": lambda: self.questions,
            "moments": lambda: self.moments,
        }
        return parts[self.task]()

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names that scores are broken down by, such as the classes of a detector or the types of questions."""
        return self.metric.classes(self.annotations)

    @property
    def rules(self) -> Protocol:
        """Protocol that detections are scored by; detection only."""
        assert self.about.content.protocol is not None
        return protocols[self.about.content.protocol]

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
    def whole_truth(self) -> Truth:
        """Annotated segments of all videos; detection only."""
        try:
            return read_truth(self._truth_file).with_classes(self.about.classes)
        except JostleError as error:  # also a class that the run does not know
            raise DataError(f"{error}; {_TRUTH_ANEW}", fault="F110") from None

    @cached_property
    def truth(self) -> Truth:
        """Annotated segments of the processed videos; detection only."""
        whole = self.whole_truth
        return whole.of_videos(self.predictions(CLEAN).videos) if CLEAN in self.cells else whole

    @cached_property
    def labels(self) -> VideoLabels:
        """The classes of videos; for runs of recognition."""
        labelled = self._labelled_videos
        index = {name: k for k, name in enumerate(labelled.classes)}
        pairs = [(v, index[name]) for v, names in enumerate(labelled.videos.values()) for name in names]
        video, label = np.array(pairs, np.int32).reshape(-1, 2).T
        return VideoLabels(tuple(labelled.videos), labelled.classes, video, label)

    @cached_property
    def frames(self) -> FrameSets:
        """Sets of frames; for runs of pm-k."""
        return FrameSets(self._labelled_frames.sets, self._labelled_frames.labels)

    @cached_property
    def objects(self) -> BoxSets:
        """Sets of frames and the objects in them; for runs of object detectors."""
        held = self._boxed_frames
        boxes = {}
        for frame, rows in held.boxes.items():
            table = np.array(rows, np.float64).reshape(-1, 5)
            boxes[frame] = Boxes(table[:, 1:], table[:, 0].astype(np.int64))
        return BoxSets(held.classes, held.sets, boxes)

    @cached_property
    def questions(self) -> QuestionSet:
        """Questions about the videos; for runs of questions."""
        with self._refusing_items():
            return QuestionSet(self._questioned_videos.questions).answered

    @cached_property
    def moments(self) -> MomentSet:
        """Sentences about the videos, with their windows; for runs of moments."""
        with self._refusing_items():
            return MomentSet(self._described_videos.moments).located

    @contextmanager
    def _refusing_items(self) -> Iterator[None]:
        """Raise DataError F110 for a question or sentence of truth.json that is impossible."""
        try:
            yield
        except BadValue as error:
            raise DataError(f"{self._truth_file}: {error}; {_TRUTH_ANEW}", fault="F110") from None

    @cached_property
    def actions(self) -> dict[str, Segments] | None:
        """Action spans of videos, for all tasks but detection; None in older runs."""
        annotations: dict[str, Callable[[], Any]] = {
            "recognition": lambda: self._labelled_videos,
            "frames": lambda: self._labelled_frames,
            "objects": lambda: self._boxed_frames,
            "questions": lambda: self._questioned_videos,
            "moments": lambda: self._described_videos,
        }
        places: ActionSpans | None = annotations[self.task]().actions
        return None if places is None else segments_from_pairs(places)

    @cached_property
    def diagnosis(self) -> StoredDiagnosis | None:
        """Why a detector fails, clean, and under `cells` in every other cell; None for other tasks."""
        path = RunFolder(self.folder).diagnosis
        return read_record(StoredDiagnosis, path, _SCORES_ANEW) if os.path.lexists(path) else None

    @cached_property
    def failures(self) -> tuple[VideoFailed, ...]:
        """Videos that could not be used."""
        path = RunFolder(self.folder).failures
        return tuple(read_lines(path, partial(parse_record, VideoFailed), "refuse", _SCORES_ANEW, "F110"))

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

    def predictions(self, cell: str) -> Predictions:
        """Return the detections of a cell."""
        return read_predictions(self.predictions_file(cell))

    def table(self, cell: str) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Videos, or frames, and their rows of class scores in a cell."""
        path = self.predictions_file(cell)
        check_regular_file(path)
        return read_table(path, "frames" if self.task == "frames" else "videos")

    def boxes(self, cell: str) -> tuple[dict[str, Boxes], tuple[str, ...]]:
        """Return the boxes detected in each frame of a cell, and the classes the detector knows."""
        path = self.predictions_file(cell)
        check_regular_file(path)
        return read_boxes(path)

    def answers(self, cell: str) -> AnswerSet:
        """Return the answers of a cell by the ids of questions."""
        path, questions = self.predictions_file(cell), self.questions
        with refusing_rows(path, self.task):
            rows = self._rows(path)
            answers = {name: parse_answer(rows[name]) for name in questions.by_id if name in rows}
            return AnswerSet(answers).checked(questions)

    def windows(self, cell: str) -> MomentPredictions:
        """Return the predicted windows of a cell by the ids of sentences."""
        path, moments = self.predictions_file(cell), self.moments
        with refusing_rows(path, self.task):
            rows = self._rows(path)
            windows = {name: parse_windows(rows[name]) for name in moments.by_id if name in rows}
            return MomentPredictions(windows).checked(moments)

    def _rows(self, path: Path) -> dict[str, Any]:
        check_regular_file(path)
        rows: dict[str, Any] = read_json(path)
        return rows

    @property
    def suffix(self) -> str:
        """Suffix of the predictions files of this task."""
        return ".json" if self.task in ("detection", "questions", "moments") else ".npz"

    def predictions_file(self, cell: str) -> Path:
        """Return the path of the predictions of a cell."""
        if self.about.content.cell(cell) is None:
            raise UnknownName(f"cell of {self.folder}", cell, [one.cell for one in self.about.content.cells])
        return RunFolder(self.folder, self.suffix).predictions_of(slugify(cell))

    @property
    def _truth_file(self) -> Path:
        path = RunFolder(self.folder).truth
        if not path.exists():
            raise DataError(f"{path}: not there; run again into this folder, which writes it")
        return path

    @cached_property
    def _labelled_videos(self) -> LabelledVideos:
        return read_record(LabelledVideos, self._truth_file, _TRUTH_ANEW)

    @cached_property
    def _questioned_videos(self) -> QuestionedVideos:
        with self._refusing_items():
            return read_record(QuestionedVideos, self._truth_file, _TRUTH_ANEW)

    @cached_property
    def _described_videos(self) -> DescribedVideos:
        with self._refusing_items():
            return read_record(DescribedVideos, self._truth_file, _TRUTH_ANEW)

    @cached_property
    def _boxed_frames(self) -> BoxedFrames:
        return read_record(BoxedFrames, self._truth_file, _TRUTH_ANEW)

    @cached_property
    def _labelled_frames(self) -> LabelledFrames:
        return read_record(LabelledFrames, self._truth_file, _TRUTH_ANEW)
