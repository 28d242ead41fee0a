"""Detections from video itself: features are made on the way and thrown away after, or frames are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

from jostle.benchmarks.recipe import Cell
from jostle.errors import DataError, JostleError, ResourceError
from jostle.extraction.extractor import FeatureExtractor
from jostle.extraction.folder import Corrupting, features_of, single_threaded
from jostle.filing.names import listing
from jostle.looking.clip_detection import ClipDetector, VideoClips
from jostle.looking.detection import FeatureDetector, Grid, VideoScores, find_segments
from jostle.looking.footage import footage_of
from jostle.looking.work import Order, asked
from jostle.types.predictions import Predictions
from jostle.types.segments import Segments

Progress = Callable[[int, int], None]
Find = Callable[[str, Path, Fraction | None, Progress | None], Segments]  # in a video of this id and rate


def by_features(
    detector: FeatureDetector,
    extractor: FeatureExtractor,
    corrupting: Corrupting = Corrupting(),  # noqa: B008  (frozen)
    video_scores: VideoScores | None = None,
) -> Find:
    """What finds segments in a video through an extractor; see `detect_videos`."""
    grid = Grid(extractor.spec.stride, extractor.spec.frames)

    def find(name: str, path: Path, fps: Fraction | None, progress: Progress | None) -> Segments:
        made, reader, rate = features_of(
            path, extractor, video_id=name, corrupting=corrupting, fps=fps, progress=progress
        )
        return find_segments(
            detector, made.features, grid, name=name, fps=rate, duration=reader.end_s, video_scores=video_scores
        )

    return find


def by_clips(
    detector: ClipDetector,
    corrupting: Corrupting = Corrupting(),  # noqa: B008  (frozen)
    video_scores: VideoScores | None = None,
) -> Find:
    """What finds segments in the frames of a video, clip by clip; see `detect_videos`."""
    state = Cell("", corrupting.specs, corrupting.placement, "", False)

    def find(name: str, path: Path, fps: Fraction | None, progress: Progress | None) -> Segments:
        scores = None if video_scores is None else video_scores.of(name)
        order = Order(name, path, (state,), corrupting.seed, corrupting.segments.get(name), fps=fps)
        with footage_of(order) as footage, single_threaded():
            clean, top = footage.clean, footage.under(state)
            video = VideoClips(clean, detector, duration=footage.end_s, video_scores=scores, progress=progress)
            return asked(name, lambda: video.found({"": top}).segments[""], "detector")

    return find


def detect_videos(
    find: Find,
    videos: Mapping[str, Path],
    *,
    rates: Mapping[str, Fraction] | None = None,
    on_bad: Callable[[str, JostleError], None] | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """What a detector finds in each video.

    Args:
        find: what looks at one, `by_features` or `by_clips`: with what befalls the videos first, and the scores of
            whole videos for class-agnostic detectors.
        rates: of folders of images that do not say it themselves.
        on_bad: told of a video that cannot be used, which is then left out; without it the first one ends it all.
        progress: told of videos, or of the frames or clips of a single one.

    Raises:
        DataError: if none of several videos could be used.
    """
    found: dict[str, Segments] = {}
    for done, (name, path) in enumerate(videos.items(), 1):
        try:
            found[name] = find(name, path, (rates or {}).get(name), progress if len(videos) == 1 else None)
        except JostleError as error:
            if on_bad is None or len(videos) == 1 or isinstance(error, ResourceError):
                raise
            on_bad(name, error)
        if progress is not None and len(videos) > 1:
            progress(done, len(videos))
    if not found:
        raise DataError(f"none of {len(videos)} videos could be used: {listing(videos)}")
    return Predictions.from_segments(found)
