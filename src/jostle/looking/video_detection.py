"""Detections from video itself: features are made on the way and thrown away after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

from jostle.errors import DataError, JostleError, ResourceError
from jostle.extraction.extractor import FeatureExtractor
from jostle.extraction.folder import Corrupting, features_of
from jostle.filing.names import listing
from jostle.looking.detection import FeatureDetector, Grid, VideoScores, find_segments
from jostle.types.predictions import Predictions
from jostle.types.segments import Segments


def detect_videos(
    detector: FeatureDetector,
    videos: Mapping[str, Path],
    extractor: FeatureExtractor,
    *,
    corrupting: Corrupting = Corrupting(),  # noqa: B008  (frozen)
    video_scores: VideoScores | None = None,
    rates: Mapping[str, Fraction] | None = None,
    on_bad: Callable[[str, JostleError], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """What a detector finds in each video.

    Args:
        corrupting: what befalls the videos first.
        video_scores: for class-agnostic detectors.
        rates: of folders of images that do not say it themselves.
        on_bad: told of a video that cannot be used, which is then left out; without it the first one ends it all.
        progress: told of videos, or of the frames of a single one.

    Raises:
        DataError: if none of several videos could be used.
    """
    grid = Grid(extractor.spec.stride, extractor.spec.frames)
    found: dict[str, Segments] = {}
    for done, (name, path) in enumerate(videos.items(), 1):
        try:
            made, reader, fps = features_of(
                path,
                extractor,
                video_id=name,
                corrupting=corrupting,
                fps=(rates or {}).get(name),
                progress=progress if len(videos) == 1 else None,
            )
            found[name] = find_segments(
                detector, made.features, grid, name=name, fps=fps, duration=reader.end_s, video_scores=video_scores
            )
        except JostleError as error:
            if on_bad is None or len(videos) == 1 or isinstance(error, ResourceError):
                raise
            on_bad(name, error)
        if progress is not None and len(videos) > 1:
            progress(done, len(videos))
    if not found:
        raise DataError(f"none of {len(videos)} videos could be used: {listing(videos)}")
    return Predictions.from_segments(found)
