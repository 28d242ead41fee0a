"""Detection in videos without feature files: features are computed on the fly, or frames are processed directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from jostle.core.finite import naming
from jostle.core.formatting import join_names
from jostle.core.interruption import exits_as_errors
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.damage_finder import DamageFinder
from jostle.errors import DataError, JostleError, ResourceError
from jostle.evaluation.inference.clip_detection import ClipDetector, VideoClips
from jostle.evaluation.inference.feature_detection import DetectsInFeatures, FeatureGrid, VideoScores, submit_detection
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import VideoJob, call_model
from jostle.evaluation.recipes.recipe import Cell
from jostle.features.folder import CorruptionOptions, extract_video, single_threaded
from jostle.features.interpolation import MendingResult
from jostle.mending.damage_finders import find_damaged
from jostle.models.extractors.protocol import FeatureExtractor
from jostle.parallel.workers import map_unordered

Progress = Callable[[int, int], None]
OnMended = Callable[[str, MendingResult], None]
Find = Callable[[str, Path, Fraction | None, Progress | None], Segments]  # id, path, rate and progress of a video


@dataclass(frozen=True)
class ByFeatures:
    """Detection in a video through an extractor; see `detect_videos`.

    Attributes:
        corrupting: corruptions to apply to the video first.
        video_scores: of whole videos, for class-agnostic detectors.
        mending: finds corrupted frames, whose features are replaced.
        on_mended: called with each video's id and the corrupted frames found in it.
    """

    detector: DetectsInFeatures
    extractor: FeatureExtractor
    corrupting: CorruptionOptions = CorruptionOptions()  # noqa: RUF009
    video_scores: VideoScores | None = None
    mending: DamageFinder | None = None
    on_mended: OnMended | None = None

    def __call__(self, name: str, path: Path, fps: Fraction | None, progress: Progress | None) -> Segments:
        grid = FeatureGrid(self.extractor.spec.stride, self.extractor.spec.frames)
        result, reader, rate = extract_video(
            path,
            self.extractor,
            video_id=name,
            corrupting=self.corrupting,
            finder=self.mending,
            fps=fps,
            progress=progress,
        )
        if self.on_mended is not None and result.mended is not None:
            self.on_mended(name, result.mended)
        scores, end_s = self.video_scores, reader.end_s
        finish = submit_detection(
            self.detector, result.features, grid, name=name, fps=rate, duration=end_s, video_scores=scores
        )
        return finish()


@dataclass(frozen=True)
class ByClips:
    """Detection in the frames of a video, clip by clip; see `ByFeatures`."""

    detector: ClipDetector
    corrupting: CorruptionOptions = CorruptionOptions()  # noqa: RUF009
    video_scores: VideoScores | None = None
    mending: DamageFinder | None = None
    on_mended: OnMended | None = None

    def __call__(self, name: str, path: Path, fps: Fraction | None, progress: Progress | None) -> Segments:
        corrupting = self.corrupting
        state = Cell("", corrupting.specs, corrupting.placement, "", False)
        scores = None if self.video_scores is None else self.video_scores.of(name)
        job = VideoJob(name, path, (state,), corrupting.seed, corrupting.segments.get(name), fps=fps)
        with open_footage(job) as footage, single_threaded():
            clean, top = footage.clean, footage.under(state)
            video = VideoClips(clean, self.detector, duration=footage.end_s, video_scores=scores, progress=progress)
            corrupted = None if self.mending is None else find_damaged(self.mending, clean, {"": top})
            detections = call_model(name, lambda: video.detect({"": top}, corrupted), "detector")
        if self.on_mended is not None and corrupted is not None:
            self.on_mended(name, MendingResult(corrupted[""], bool(detections.left)))
        return detections.segments[""]


def detect_videos(
    find: Find,
    videos: Mapping[str, Path],
    *,
    rates: Mapping[str, Fraction] | None = None,
    on_bad: Callable[[str, JostleError], None] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Predictions:
    """Run a detector on each video.

    Args:
        find: detection in one video, `ByFeatures` or `ByClips`.
        rates: frame rates of folders of images that do not record one.
        on_bad: called with a video that cannot be used, which is then left out; without it the first error is raised.
        jobs: number of parallel workers; for several, `find` has to be picklable.
        progress: called with the videos done and in all, or with the frames or clips of a single one.
    """
    items = [_Item(name, path, (rates or {}).get(name)) for name, path in videos.items()]
    segments: dict[str, Segments] = {}
    start = partial(_start_worker, find, progress if len(videos) == 1 else None)
    with closing(map_unordered(start, items, jobs, lost=lambda item, error: error)) as results:
        for done, (item, result) in enumerate(results, 1):
            if not isinstance(result, JostleError):
                segments[item.name] = result
            elif on_bad is None or len(videos) == 1:
                raise result
            else:
                on_bad(item.name, result)
            if progress is not None and len(videos) > 1:
                progress(done, len(videos))
    if not segments:
        raise DataError(f"none of {len(videos)} videos could be used: {join_names(videos)}")
    return Predictions.from_segments({name: segments[name] for name in videos if name in segments})


@dataclass(frozen=True)
class _Item:
    """Video to process in a worker."""

    name: str
    path: Path
    fps: Fraction | None

    def __str__(self) -> str:
        return str(self.path)


def _start_worker(find: Find, progress: Progress | None) -> Callable[[_Item], Segments | JostleError]:
    """Return the work function of a worker, which returns errors of single videos instead of raising them."""

    def attempt(item: _Item) -> Segments | JostleError:
        try:
            with exits_as_errors(), naming(video=item.name):
                return find(item.name, item.path, item.fps, progress)
        except ResourceError:
            raise
        except JostleError as error:
            return error

    return attempt
