"""Predictors of one detector in a run: from features, or from the frames themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.segments import Segments
from jostle.corruptions.engine.stages import MADE, PipelineSource, origins
from jostle.errors import DataError
from jostle.evaluation.inference.clip_detection import ClipDetector, VideoClips
from jostle.evaluation.inference.feature_detection import DetectsInFeatures, check_segments
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import VideoJob, VideoResult, call_model
from jostle.evaluation.inference.sweep import DetectorGroup, MultiDetectorPredictor
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.interpolation import MendingResult, nearest_undamaged
from jostle.features.result import Cost
from jostle.features.windows import ReleasedBug, Rule
from jostle.mending.damage import Mending, find_damaged
from jostle.models.extractors.protocol import FeatureExtractor

Indices = npt.NDArray[np.int64]

MOST_BYTES = 8 * 2**30  # of all frames of a video, which such a model receives at once


@dataclass(frozen=True)
class FeatureDetectionPredictor:
    """Predictor of a feature detector; features are recomputed only where a cell changes frames.

    Attributes:
        rule, reproduce_bugs: see `jostle.features.windows.WindowGrid`.
        mending: finds corrupted frames, whose features are replaced; None to leave them.
    """

    extractor: FeatureExtractor
    detector: DetectsInFeatures
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    rule: Rule = "all"
    reproduce_bugs: tuple[ReleasedBug, ...] = ()
    mending: Mending | None = None

    def __call__(self, job: VideoJob) -> VideoResult[Segments]:
        windows = (self.rule, self.reproduce_bugs)
        mending = {} if self.mending is None else {"": self.mending}
        return MultiDetectorPredictor(
            DetectorGroup(self.extractor, {"": self.detector}, self.guard, *windows, mending)
        )(job).of("")


@dataclass(frozen=True)
class ClipDetectionPredictor:
    """Predictor of a frame detector; clips are recomputed only where a cell changes frames.

    Attributes:
        mending: finds corrupted frames, whose encodings are interpolated from the frames around them.
    """

    detector: ClipDetector
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: Mending | None = None

    def __call__(self, job: VideoJob) -> VideoResult[Segments]:
        with self.guard(), open_footage(job) as footage:
            video = VideoClips(footage.clean, self.detector, duration=footage.end_s)
            states = {cell.name: footage.under(cell) for cell in job.cells}
            corrupted = None if self.mending is None else find_damaged(self.mending, footage.clean, states)
            detections = call_model(job.name, lambda: video.detect(states, corrupted), "detector")
            once = min(footage.decoded, len(footage.clean))
            clean, others = Cost(once), Cost(footage.decoded - once)
        mended = (
            None
            if corrupted is None
            else {name: MendingResult(corrupted[name], name in detections.left) for name in states}
        )
        return VideoResult(detections.segments, clean + detections.clean, others + detections.others, mended=mended)


@dataclass(frozen=True)
class FrameDetectionPredictor:
    """Predictor of a callable from (T, H, W, 3) uint8 frames to scored Segments, in seconds.

    The callable may also accept `fps`, `duration` and `pts` as keyword arguments.

    Attributes:
        mending: finds corrupted frames, which are replaced by the nearest intact ones.
    """

    model: Callable[..., Any]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: Mending | None = None

    def __call__(self, job: VideoJob) -> VideoResult[Segments]:
        outputs: dict[str, Segments] = {}
        with self.guard(), open_footage(job) as footage:
            facts = {"fps": float(footage.clean.fps), "duration": footage.end_s, "pts": footage.clean.pts}
            clean, calls = Cost(), 0
            known: dict[bytes, Segments] = {}
            states = {cell.name: footage.under(cell) for cell in job.cells}
            corrupted = None if self.mending is None else find_damaged(self.mending, footage.clean, states)
            for cell in job.cells:
                top = states[cell.name]
                indices = np.arange(len(top)) if corrupted is None else nearest_undamaged(corrupted[cell.name])
                came_from = origins(top)[indices]
                key = came_from.tobytes()
                if key in known and (came_from != MADE).all():
                    outputs[cell.name] = known[key]
                    continue
                outputs[cell.name] = known[key] = self._detect(job.name, top, indices, facts)
                calls += 1
                if cell.name == CLEAN:
                    clean = Cost(footage.decoded, len(top), 1)
            length = len(footage.clean)
            others = Cost(footage.decoded - clean.decoded, calls * length - clean.seen, calls - clean.joined)
        mended = (
            None
            if corrupted is None
            else {name: MendingResult(one, bool(one.all())) for name, one in corrupted.items()}
        )
        return VideoResult(outputs, clean, others, mended=mended)

    def _detect(self, name: str, top: PipelineSource, indices: Indices, facts: dict[str, Any]) -> Segments:
        size = len(top) * top.size[0] * top.size[1] * 3
        if size > MOST_BYTES:
            raise DataError(
                f"video {name}: its {len(top)} frames are too many to be passed at once ({size / 2**30:.1f} GiB); "
                "name an extractor, and the model gets features"
            )
        frames = top.block(0, len(top))[indices]  # a copy: a model may write into its input
        return call_model(name, lambda: check_segments(bind_supported_arguments(self.model, facts)(frames)))


@dataclass(frozen=True)
class CallableDetector:
    """Detector that wraps a callable from (T, C) features to scored Segments.

    The callable may also accept `fps`, `duration`, `stride` and `window` as keyword arguments.
    """

    model: Callable[..., Any]

    def detect(
        self,
        features: npt.ArrayLike,
        *,
        fps: float,
        duration: float,
        stride: float = 4,
        window: float = 16,
        video_scores: npt.ArrayLike | None = None,
    ) -> Segments:
        """Call the model on the features of a video."""
        facts = {"fps": fps, "duration": duration, "stride": stride, "window": window}
        segments: Segments = bind_supported_arguments(self.model, facts)(features)
        return segments


def bind_supported_arguments(function: Callable[..., Any], facts: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a function of one argument that also passes those facts that the function has parameters for.

    >>> bind_supported_arguments(lambda frames, fps: (frames, fps), {"fps": 25.0, "duration": 2.0})("frames")
    ('frames', 25.0)
    """
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some compiled functions have no signature
        return function
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known):
        supported = set(facts)
    else:
        supported = {one.name for one in list(known)[1:] if one.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return lambda first: function(first, **{name: value for name, value in facts.items() if name in supported})
