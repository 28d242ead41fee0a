"""Detections from video itself: features are made on the way and thrown away after, or frames are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.errors import DataError, JostleError, ResourceError
from jostle.evaluation.inference.clip_detection import ClipDetector, VideoClips
from jostle.evaluation.inference.feature_detection import FeatureDetector, Grid, VideoScores, segments_later
from jostle.evaluation.inference.footage import footage_of
from jostle.evaluation.inference.jobs import Order, asked
from jostle.evaluation.recipes.recipe import Cell
from jostle.features.folder import Corrupting, features_of, single_threaded
from jostle.features.interpolation import Mended
from jostle.io.files.video_ids import listing
from jostle.mending.damage import Mending, struck_in
from jostle.models.extractors.protocol import FeatureExtractor
from jostle.parallel.workers import worked

Progress = Callable[[int, int], None]
OnMended = Callable[[str, Mended], None]
Find = Callable[[str, Path, Fraction | None, Progress | None], Segments]  # in a video of this id and rate


@dataclass(frozen=True)
class ByFeatures:
    """What finds segments in a video through an extractor; see `detect_videos`.

    Attributes:
        corrupting: what befalls a video first.
        video_scores: of whole videos, for class-agnostic detectors.
        mending: tells which frames were struck; what these touch is replaced.
        on_mended: told of each video what became of its struck frames.
    """

    detector: FeatureDetector
    extractor: FeatureExtractor
    corrupting: Corrupting = Corrupting()  # noqa: RUF009
    video_scores: VideoScores | None = None
    mending: Mending | None = None
    on_mended: OnMended | None = None

    def __call__(self, name: str, path: Path, fps: Fraction | None, progress: Progress | None) -> Segments:
        grid = Grid(self.extractor.spec.stride, self.extractor.spec.frames)
        made, reader, rate = features_of(
            path,
            self.extractor,
            video_id=name,
            corrupting=self.corrupting,
            finder=self.mending,
            fps=fps,
            progress=progress,
        )
        if self.on_mended is not None and made.mended is not None:
            self.on_mended(name, made.mended)
        scores, end_s = self.video_scores, reader.end_s
        finish = segments_later(
            self.detector, made.features, grid, name=name, fps=rate, duration=end_s, video_scores=scores
        )
        return finish()


@dataclass(frozen=True)
class ByClips:
    """What finds segments in the frames of a video, clip by clip; see `ByFeatures`."""

    detector: ClipDetector
    corrupting: Corrupting = Corrupting()  # noqa: RUF009
    video_scores: VideoScores | None = None
    mending: Mending | None = None
    on_mended: OnMended | None = None

    def __call__(self, name: str, path: Path, fps: Fraction | None, progress: Progress | None) -> Segments:
        told = self.corrupting
        state = Cell("", told.specs, told.placement, "", False)
        scores = None if self.video_scores is None else self.video_scores.of(name)
        order = Order(name, path, (state,), told.seed, told.segments.get(name), fps=fps)
        with footage_of(order) as footage, single_threaded():
            clean, top = footage.clean, footage.under(state)
            video = VideoClips(clean, self.detector, duration=footage.end_s, video_scores=scores, progress=progress)
            struck = None if self.mending is None else struck_in(self.mending, clean, {"": top})
            found = asked(name, lambda: video.found({"": top}, struck), "detector")
        if self.on_mended is not None and struck is not None:
            self.on_mended(name, Mended(struck[""], bool(found.left)))
        return found.segments[""]


def detect_videos(
    find: Find,
    videos: Mapping[str, Path],
    *,
    rates: Mapping[str, Fraction] | None = None,
    on_bad: Callable[[str, JostleError], None] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Predictions:
    """What a detector finds in each video.

    Args:
        find: what looks at one, `ByFeatures` or `ByClips`: with what befalls the videos first, and the scores of
            whole videos for class-agnostic detectors.
        rates: of folders of images that do not say it themselves.
        on_bad: told of a video that cannot be used, which is then left out; without it the first one ends it all.
        jobs: videos at once; for several, `find` has to be picklable.
        progress: told of videos, or of the frames or clips of a single one.

    Raises:
        DataError: if none of several videos could be used.
    """
    items = [_Item(name, path, (rates or {}).get(name)) for name, path in videos.items()]
    found: dict[str, Segments] = {}
    start = partial(_attempting, find, progress if len(videos) == 1 else None)
    with closing(worked(start, items, jobs)) as results:
        for done, (item, result) in enumerate(results, 1):
            if not isinstance(result, JostleError):
                found[item.name] = result
            elif on_bad is None or len(videos) == 1:
                raise result
            else:
                on_bad(item.name, result)
            if progress is not None and len(videos) > 1:
                progress(done, len(videos))
    if not found:
        raise DataError(f"none of {len(videos)} videos could be used: {listing(videos)}")
    return Predictions.from_segments({name: found[name] for name in videos if name in found})


@dataclass(frozen=True)
class _Item:
    """A video for a worker."""

    name: str
    path: Path
    fps: Fraction | None

    def __str__(self) -> str:
        return str(self.path)


def _attempting(find: Find, progress: Progress | None) -> Callable[[_Item], Segments | JostleError]:
    """Starts a worker: what is wrong with one video is its result."""

    def attempt(item: _Item) -> Segments | JostleError:
        try:
            return find(item.name, item.path, item.fps, progress)
        except ResourceError:
            raise
        except JostleError as error:
            return error

    return attempt
