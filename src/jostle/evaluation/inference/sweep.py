"""Feature detection under many corruptions: decoded once, features recomputed only where frames change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from jostle.core.types.segments import Segments
from jostle.evaluation.inference.feature_detection import DetectsInFeatures, FeatureGrid, submit_detection
from jostle.evaluation.inference.footage import open_video
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.engine import VideoFeatures
from jostle.features.frames import CachedFrames
from jostle.features.interpolation import MendingResult
from jostle.features.result import Cost
from jostle.features.windows import ReleasedBug, Rule
from jostle.mending.damage import Mending
from jostle.models.extractors.protocol import FeatureExtractor

ByDetector = dict[str, Segments]


@dataclass(frozen=True)
class DetectorGroup:
    """Detectors that share an extractor.

    Attributes:
        extractor: computes the features.
        detectors: by name; all process the same features.
        guard: context manager for model calls, such as one that limits threads.
        rule, reproduce_bugs: see `jostle.features.windows.WindowGrid`.
        mending: by detector, what finds corrupted frames, whose features are replaced for it. Other detectors process
            the features unchanged.
    """

    extractor: FeatureExtractor
    detectors: Mapping[str, DetectsInFeatures]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    rule: Rule = "all"
    reproduce_bugs: tuple[ReleasedBug, ...] = ()
    mending: Mapping[str, Mending] = field(default_factory=dict)

    @property
    def groups(self) -> dict[Mending | None, list[str]]:
        """Names of the detectors that process the same features, by mending."""
        groups: dict[Mending | None, list[str]] = {}
        for name in self.detectors:
            groups.setdefault(self.mending.get(name), []).append(name)
        return groups


@dataclass(frozen=True)
class MultiDetectorResult(VideoResult[ByDetector]):
    """Detections of several detectors in one video.

    Attributes:
        mended_for: corrupted frames found, by detector and cell; without the detectors that have no mending.
    """

    mended_for: dict[str, dict[str, MendingResult]] = field(default_factory=dict)

    def of(self, model: str) -> VideoResult[Segments]:
        """Return the result of one detector."""
        outputs = {cell: segments[model] for cell, segments in self.outputs.items()}
        return VideoResult(outputs, self.clean, self.cells, self.source, mended=self.mended_for.get(model))


@dataclass(frozen=True)
class MultiDetectorPredictor:
    """Predictor that runs several detectors on the same features."""

    models: DetectorGroup

    def __call__(self, job: VideoJob) -> MultiDetectorResult:
        with self.models.guard():
            return _predict(job, self.models)


@dataclass(frozen=True)
class MultiDetectorLoader:
    """Factory that loads the models in the process that uses them, and returns their predictor."""

    load: Callable[[], DetectorGroup]

    def __call__(self) -> MultiDetectorPredictor:
        return MultiDetectorPredictor(self.load())


def _predict(job: VideoJob, models: DetectorGroup) -> MultiDetectorResult:
    grid = FeatureGrid(models.extractor.spec.stride, models.extractor.spec.frames)
    outputs: dict[str, ByDetector] = {cell.name: {} for cell in job.cells}
    pending: dict[tuple[str, str], Callable[[], Segments]] = {}
    mended: dict[str, dict[str, MendingResult]] = {}
    clean, others = Cost(), Cost()
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
            begun = video.cost
            own = video.clean()
            clean, plain = clean + (video.cost - begun), video.plain()
            for cell in job.cells:
                done = own
                if cell.name != CLEAN:
                    done = video.under(cell.parsed, cell.placement)
                    others += done.cost
                for name in names:
                    features = np.array(done.features)
                    pending[cell.name, name] = submit_detection(
                        models.detectors[name], features, grid, name=job.name, fps=video.fps, duration=reader.end_s
                    )
                    if done.mended is not None:
                        mended.setdefault(name, {})[cell.name] = done.mended
    for (cell_name, name), finish in pending.items():
        outputs[cell_name][name] = finish()
    return MultiDetectorResult(outputs, clean, others, mended_for=mended)
