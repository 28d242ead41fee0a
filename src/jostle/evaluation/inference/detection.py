"""Predictors of detectors in a run: from features, recomputed only where frames change, or from the frames."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

import numpy as np
import numpy.typing as npt

from jostle.core.finite import naming
from jostle.core.types.segments import Segments
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.damage_finder import DamageFinder
from jostle.corruptions.engine.stages import MADE, origins
from jostle.errors import DataError
from jostle.evaluation.inference.clip_detection import ClipDetector, VideoClips
from jostle.evaluation.inference.feature_detection import (
    DetectsInFeatures,
    FeatureGrid,
    check_segments,
    submit_detection,
)
from jostle.evaluation.inference.footage import open_footage, open_video
from jostle.evaluation.inference.jobs import Output, VideoJob, VideoResult, call_model, first_corrupted
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.caches import CachedFrames
from jostle.features.extraction import Cost, Extraction
from jostle.features.interpolation import MendingResult, nearest_undamaged
from jostle.features.options import ReleasedBug, Rule
from jostle.features.sweep import Corruptions
from jostle.features.video import VideoFeatures
from jostle.mending.damage_finders import find_damaged
from jostle.models.extractors.protocol import FeatureExtractor, Features

ByDetector = dict[str, Segments]
STATES_AT_ONCE = 4  # states of a video that a detector is given together


@dataclass(frozen=True)
class DetectorGroup:
    """Predictor of detectors that share an extractor."""

    extractor: FeatureExtractor  # computes the features
    detectors: Mapping[str, DetectsInFeatures]  # by name; all process the same features
    # Context manager for model calls, such as one that limits threads.
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    # `rule` and `reproduce_bugs`: see `jostle.features.windows.WindowGrid`.
    rule: Rule = "all"
    reproduce_bugs: tuple[ReleasedBug, ...] = ()
    # By detector, what finds corrupted frames, whose features are replaced for it. Other detectors process the features
    # unchanged.
    mending: Mapping[str, DamageFinder] = field(default_factory=dict)
    reuses: ClassVar[bool] = True

    def __call__(self, job: VideoJob) -> MultiDetectorResult:
        with self.guard():
            return _predict(job, self)

    @property
    def groups(self) -> dict[DamageFinder | None, list[str]]:
        """Names of the detectors that process the same features, by mending."""
        groups: dict[DamageFinder | None, list[str]] = {}
        for name in self.detectors:
            groups.setdefault(self.mending.get(name), []).append(name)
        return groups


@dataclass(frozen=True)
class MultiDetectorResult(VideoResult[ByDetector]):
    """Detections of several detectors in one video."""

    # Corrupted frames found, by detector and cell; without the detectors that have no mending.
    mended_for: dict[str, dict[str, MendingResult]] = field(default_factory=dict)

    def of(self, model: str) -> VideoResult[Segments]:
        """Return the result of one detector."""
        outputs = {cell: segments[model] for cell, segments in self.outputs.items() if model in segments}
        return VideoResult(
            outputs,
            self.clean,
            self.cells,
            self.source,
            mended=self.mended_for.get(model),
            evidence=self.evidence,
            reuse_agrees=self.reuse_agrees,
        )


def _predict(job: VideoJob, models: DetectorGroup) -> MultiDetectorResult:
    grid = FeatureGrid(models.extractor.spec.stride, models.extractor.spec.frames)
    outputs: dict[str, ByDetector] = {cell.name: {} for cell in job.cells}
    pending: dict[tuple[str, str], Callable[[], Segments]] = {}
    mended: dict[str, dict[str, MendingResult]] = {}
    clean, others = Cost(), Cost()
    evidence: list[Features] = []
    checked = first_corrupted(job.cells) if job.check_reuse else None
    with open_video(job) as reader:
        frames, plain = CachedFrames(reader), None
        for mending, names in models.groups.items():
            video = VideoFeatures(
                frames,
                models.extractor,
                rule=models.rule,
                reproduce_bugs=models.reproduce_bugs,
                seed=job.seed,
                video_id=job.name,
                segments=job.segments,
                path=None if reader.damage else reader.coded_path,
                bit_rate=reader.facts.bit_rate,
                clean=plain,
                finder=mending,
            )
            states: Iterator[tuple[str, Extraction]] = iter(())
            if job.reuse or CLEAN in outputs:
                begun = video.cost
                with naming(cell=CLEAN):
                    own = video.clean()
                clean, plain = clean + (video.cost - begun), video.plain()
                states = iter([(CLEAN, own)] if CLEAN in outputs else [])
            corrupted = {cell.name: (cell.parsed, cell.placement) for cell in job.cells if cell.name != CLEAN}
            states = itertools.chain(states, video.sweep(corrupted) if job.reuse else _each_whole(video, corrupted))
            # Several at a time, so that a detector in another process has them in one batch; few, so that it detects
            # while later cells are computed.
            while some := list(itertools.islice(states, STATES_AT_ONCE)):
                evidence += [done.features for cell, done in some if checked is not None and cell == checked.name]
                for (cell, done), name in itertools.product(some, () if job.compared_only else names):
                    pending[cell, name] = submit_detection(
                        models.detectors[name],
                        np.array(done.features),
                        grid,
                        name=job.name,
                        fps=video.fps,
                        duration=reader.end_s,
                        cell=cell,
                    )
                    if done.mended is not None:
                        mended.setdefault(name, {})[cell] = done.mended
                others = sum((done.cost for cell, done in some if cell != CLEAN), others)
    for (cell, name), finish in pending.items():
        outputs[cell][name] = finish()
    return MultiDetectorResult(outputs, clean, others, mended_for=mended, evidence=tuple(evidence))


def _each_whole(video: VideoFeatures, cells: Mapping[str, Corruptions]) -> Iterator[tuple[str, Extraction]]:
    """Yield the features under each of many corruptions, all computed from their frames."""
    for name, (specs, placement) in cells.items():
        with naming(cell=name):
            done = video.whole(specs, placement)
        yield name, done


Indices = npt.NDArray[np.int64]

MOST_BYTES = 8 * 2**30  # of all frames of a video, which such a model receives at once


@dataclass(frozen=True)
class FeatureDetectionPredictor:
    """Predictor of a feature detector; features are recomputed only where a cell changes frames."""

    extractor: FeatureExtractor
    detector: DetectsInFeatures
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    # `rule` and `reproduce_bugs`: see `jostle.features.windows.WindowGrid`.
    rule: Rule = "all"
    reproduce_bugs: tuple[ReleasedBug, ...] = ()
    mending: DamageFinder | None = None  # finds corrupted frames, whose features are replaced; None to leave them
    reuses: ClassVar[bool] = True

    def __call__(self, job: VideoJob) -> VideoResult[Segments]:
        windows = (self.rule, self.reproduce_bugs)
        mending = {} if self.mending is None else {"": self.mending}
        group = DetectorGroup(self.extractor, {"": self.detector}, self.guard, *windows, mending)
        return group(job).of("")


@dataclass(frozen=True)
class ClipDetectionPredictor:
    """Predictor of a frame detector; clips are recomputed only where a cell changes frames."""

    detector: ClipDetector
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    # Finds corrupted frames, whose encodings are interpolated from the frames around them.
    mending: DamageFinder | None = None
    reuses: ClassVar[bool] = True

    def __call__(self, job: VideoJob) -> VideoResult[Segments]:
        with self.guard(), open_footage(job) as footage:
            video = VideoClips(footage.clean, self.detector, duration=footage.end_s, reuse=job.reuse)
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
        checked = first_corrupted(job.cells) if job.check_reuse else None
        return VideoResult(
            detections.segments,
            clean + detections.clean,
            others + detections.others,
            mended=mended,
            evidence=() if checked is None else (detections.candidates[checked.name],),
        )


@dataclass(frozen=True)
class WholeVideoPredictor(Generic[Output]):
    """Predictor of a callable from the (T, H, W, 3) uint8 frames of a whole video, as one to scored Segments.

    The callable may also accept `fps`, `duration` and `pts` as keyword arguments.
    """

    model: Callable[..., Any]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: DamageFinder | None = None  # finds corrupted frames, which are replaced by the nearest intact ones
    check: Callable[[Any], Any] = check_segments  # converts its output, or refuses it

    def __call__(self, job: VideoJob) -> VideoResult[Output]:
        outputs: dict[str, Output] = {}
        with self.guard(), open_footage(job) as footage:
            facts = {"fps": float(footage.clean.fps), "duration": footage.end_s, "pts": footage.clean.pts}
            clean, calls = Cost(), 0
            known: dict[bytes, Output] = {}
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
                outputs[cell.name] = known[key] = self._predict(job.name, cell.name, top, indices, facts)
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

    def _predict(self, name: str, cell: str, top: VideoSource, indices: Indices, facts: dict[str, Any]) -> Output:
        size = len(top) * top.size[0] * top.size[1] * 3
        if size > MOST_BYTES:
            raise DataError(
                f"video {name}: its {len(top)} frames are too many to be passed at once ({size / 2**30:.1f} GiB); "
                "name an extractor, and the model gets features"
            )
        frames = top.block(0, len(top))[indices]  # a copy: a model may write into its input
        call = bind_supported_arguments(self.model, facts)
        output: Output = call_model(name, lambda: self.check(call(frames)), cell=cell)
        return output


@dataclass(frozen=True)
class CallableDetector:
    """Detector that wraps a callable from (T, C) features to scored Segments.

    The callable may also accept `fps`, `duration`, `stride` and `window` as keyword arguments.
    """

    model: Callable[..., Any]
    foreign: ClassVar[bool] = True

    def detect(self, features: npt.ArrayLike, *, video_scores: npt.ArrayLike | None = None, **facts: float) -> Segments:
        """Call the model on the features of a video."""
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
