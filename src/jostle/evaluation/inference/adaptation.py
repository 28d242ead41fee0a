"""Predictors that adapt a network to each video in each cell, from its source state or from that of earlier videos."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.segments import Segments
from jostle.datasets.class_matching import Scores
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.inference.feature_detection import FeatureGrid, submit_detection
from jostle.evaluation.inference.footage import Footage, open_footage, open_video
from jostle.evaluation.inference.jobs import VideoAdaptation, VideoJob, VideoResult, call_model
from jostle.evaluation.inference.recognition import RecognitionPredictor, choose_frames
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.caches import SlidingFrames
from jostle.features.extraction import Cost
from jostle.features.interpolation import MendingResult
from jostle.features.options import Rule
from jostle.features.video import VideoFeatures
from jostle.features.windows import WindowGrid, resample_frames
from jostle.models.extractors.protocol import ClipWindow

if TYPE_CHECKING:
    from jostle.models.adaptation.adapted_models import AdaptedExtractor, AdaptedRecogniser

Indices = npt.NDArray[np.int64]
SOURCE = ""  # history of a network that has adapted to nothing
WINDOWS = 8  # windows of a video that an extractor adapts to, evenly spaced


def extend_history(history: str, video: str) -> str:
    """Return the history of a network that adapts to one more video: a hash of their names in order.

    >>> extend_history("", "a") == extend_history("", "a") != extend_history("", "b")
    True
    """
    return hashlib.sha256(f"{history}\n{video}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class CellState:
    """State of a network after the videos of a cell."""

    history: str = SOURCE
    tensors: Any = None  # what adaptation changed; None for the source


@dataclass
class OnlineStates:
    """States by cell; in the episodic protocol every video begins with the source."""

    online: bool
    states: dict[str, CellState] = field(default_factory=dict)

    def before(self, cell: str) -> CellState:
        """Return the state that the next video of a cell begins with."""
        return self.states.get(cell, CellState()) if self.online else CellState()

    def commit(self, video: str, after: Mapping[str, Any]) -> dict[str, str]:
        """Take the states after a video, of all its cells at once, so that a video that fails leaves no trace.

        Returns:
            The history before the video, by cell.
        """
        histories = {cell: self.before(cell).history for cell in after}
        if self.online:
            for cell, tensors in after.items():
                self.states[cell] = CellState(extend_history(histories[cell], video), tensors)
        return histories


class AdaptedPredictor(ABC):
    """Base of predictors whose network adapts to clips or windows of each video."""

    predictor: Any  # of the network as it is
    adapted: Any  # the network with its method

    @property
    def guard(self) -> Callable[[], AbstractContextManager[None]]:
        """Context manager for model calls."""
        return self.predictor.guard  # type: ignore[no-any-return]

    @abstractmethod
    def sample_rows(self, footage: Footage, job: VideoJob) -> Indices:
        """Return the (clips, frames) indices that the network adapts to."""

    def measure_source(self, video_jobs: Iterable[VideoJob]) -> Any:
        """Measure what the method needs to know of clean videos."""

        def batches() -> Iterator[tuple[Any, int]]:
            for job in video_jobs:
                with open_footage(job) as footage:
                    rows = self.sample_rows(footage, job)
                    clips = SlidingFrames(footage.clean, rows).take(rows)
                yield self.adapted.prepare(clips), rows.size

        with self.guard():
            return self.adapted.adapter.measure_source(batches())


@dataclass(frozen=True)
class AdaptedRecognitionPredictor(AdaptedPredictor):
    """Predictor of a recogniser that adapts to all clips of a video at once, in each cell by itself."""

    predictor: RecognitionPredictor  # selects, corrupts and mends the frames
    adapted: AdaptedRecogniser
    states: OnlineStates

    def sample_rows(self, footage: Footage, job: VideoJob) -> Indices:
        return self.predictor.sample_rows(footage, job)

    def __call__(self, job: VideoJob) -> VideoResult[Scores]:
        inner, adapter = self.predictor, self.adapted.adapter
        passes = adapter.passes
        outputs: dict[str, Scores] = {}
        after: dict[str, Any] = {}
        mended: dict[str, MendingResult] = {}
        clean = Cost()
        with inner.guard(), open_footage(job) as footage:
            rows = self.sample_rows(footage, job)
            second = shift_rows(rows, len(footage.clean)) if adapter.two_views else None
            views = rows[None] if second is None else np.stack([rows, second])
            finding = None if inner.mending is None else inner.mending.finder_for(footage.clean)
            for cell in job.cells:
                top, _, indices = choose_frames(footage.under(cell), views, finding, cell, mended)
                clips = SlidingFrames(top, indices.reshape(len(indices), -1)).take(indices)
                begin, beside = self.states.before(cell.name).tensors, None if second is None else clips[1]

                def predict(clips: Any = clips[0], begin: Any = begin, beside: Any = beside) -> tuple[Scores, Any]:
                    return self.adapted.predict(clips, begin, beside)

                scores, after[cell.name] = call_model(job.name, predict, cell=cell.name)
                matched = inner.match.apply(scores, inner.model.name)
                outputs[cell.name] = np.asarray(np.mean(matched, axis=0, dtype=np.float64), np.float32)
                if cell.name == CLEAN:
                    clean = Cost(footage.decoded, rows.size, len(rows))
            cells = Cost(footage.decoded, len(job.cells) * rows.size, len(job.cells) * len(rows)) - clean
        histories = self.states.commit(job.name, after)
        return VideoResult(
            outputs,
            clean,
            cells,
            frame_indices=tuple(np.unique(rows).tolist()),
            mended=None if finding is None else mended,
            adaptation=VideoAdaptation.since(passes, adapter.passes, histories),
        )


def shift_rows(rows: Indices, length: int) -> Indices:
    """Return frames halfway between those of clips, as another view of the same clips.

    >>> shift_rows(np.array([[0, 4, 8]]), 10).tolist()
    [[2, 6, 9]]
    """
    steps = np.diff(rows, axis=1, append=2 * rows[:, -1:] - rows[:, -2:-1] if rows.shape[1] > 1 else rows + 2)
    return np.asarray(np.clip(rows + np.maximum(steps // 2, 1), 0, length - 1), np.int64)


def sample_windows(footage: Footage, spec: ClipWindow, rule: Rule, count: int = WINDOWS) -> Indices:
    """Return the (windows, frames) indices of at most `count` windows of an extractor, evenly spaced."""
    ticks = resample_frames(footage.clean.pts, footage.clean.fps, spec.fps)
    grid = WindowGrid(spec.frames, spec.stride, rule)
    numbers = np.unique(np.linspace(0, grid.count(len(ticks)) - 1, count).round().astype(np.int64))
    indices: Indices = ticks[grid.frames_of(numbers, len(ticks))]
    return indices


@dataclass(frozen=True)
class AdaptedFeaturePredictor(AdaptedPredictor):
    """Predictor of a feature detector whose extractor adapts to windows of a video, in each cell by itself."""

    predictor: FeatureDetectionPredictor
    adapted: AdaptedExtractor
    states: OnlineStates

    def sample_rows(self, footage: Footage, job: VideoJob) -> Indices:
        return sample_windows(footage, self.predictor.extractor.spec, self.predictor.rule)

    def __call__(self, job: VideoJob) -> VideoResult[Segments]:
        inner, adapter = self.predictor, self.adapted.adapter
        passes = adapter.passes
        grid = FeatureGrid(inner.extractor.spec.stride, inner.extractor.spec.frames)
        outputs: dict[str, Segments] = {}
        after: dict[str, Any] = {}
        mended: dict[str, MendingResult] = {}
        clean, others = Cost(), Cost()
        with inner.guard(), open_video(job) as reader:
            footage = Footage(reader, job)
            finding = None if inner.mending is None else inner.mending.finder_for(footage.clean)
            rows = self.sample_rows(footage, job)
            for cell in job.cells:
                # A new one for each cell: features of a network in another state must not be reused.
                video = VideoFeatures(
                    footage.clean,
                    inner.extractor,
                    rule=inner.rule,
                    reproduce_bugs=inner.reproduce_bugs,
                    seed=job.seed,
                    video_id=job.name,
                    segments=job.segments,
                    path=None if reader.damage else reader.coded_path,
                    bit_rate=reader.facts.bit_rate,
                    finder=inner.mending,
                )
                before = video.cost
                top, _, indices = choose_frames(footage.under(cell), rows, finding, cell, {})
                windows, begin = SlidingFrames(top, indices).take(indices), self.states.before(cell.name).tensors
                with self.adapted.adapting(windows, begin) as after[cell.name]:
                    done = video.clean() if cell.name == CLEAN else video.whole(cell.parsed, cell.placement)
                outputs[cell.name] = submit_detection(
                    inner.detector,
                    np.array(done.features),
                    grid,
                    name=job.name,
                    fps=video.fps,
                    duration=reader.end_s,
                    cell=cell.name,
                )()
                if done.mended is not None:
                    mended[cell.name] = done.mended
                if cell.name == CLEAN:
                    clean = video.cost - before
                else:
                    others += video.cost - before
        histories = self.states.commit(job.name, after)
        return VideoResult(
            outputs,
            clean,
            others,
            mended=None if inner.mending is None else mended,
            adaptation=VideoAdaptation.since(passes, adapter.passes, histories),
        )
