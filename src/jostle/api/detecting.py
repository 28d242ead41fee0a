"""Detectors over features or video."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.corrupting import SegmentsLike
from jostle.errors import BadValue, JostleError
from jostle.loading.detector import looks_at_frames, name_classes
from jostle.types.predictions import Predictions
from jostle.types.truth import Truth

if TYPE_CHECKING:
    from jostle.corrupting.spec import Spec
    from jostle.detectors.detector import Detector
    from jostle.looking.detection import Grid
    from jostle.models.extractor import Extractor

Progress = Callable[[int, int], None]


def detect(
    source: str | Path,
    detector: Detector[Any],
    *,
    truth: Truth | str | Path | None = None,
    grid: Grid | None = None,
    duration: float | None = None,
    video_scores: str | Path | None = None,
    extractor: Extractor | None = None,
    spec: str | Spec | Sequence[str | Spec] = (),
    placement: str | None = None,
    segments: SegmentsLike = None,
    video_id: str | None = None,
    seed: int = 0,
    fps: Fraction | float | None = None,
    on_bad: Callable[[str, JostleError], None] | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """What a detector finds in a feature file or a video, or in each of a folder.

    Args:
        source: features as `.npy`; with an extractor or a detector of frames, video, as files or folders of images.
        truth: gives rate and duration of the videos, and which ones to look at; of video, their actions.
        grid: stride, window, rate and file names of the features; by default what `jostle extract` noted beside them.
        duration: of a single feature file, in seconds.
        video_scores: JSON of a video classifier, for class-agnostic detectors such as those for ActivityNet.
        extractor: makes features of video.
        spec: corruptions that befall the video first, in order.
        placement: which frames they strike; by default what each spec says.
        segments: the actions of a single video, for placements that need them.
        video_id: of a single video; by default the name of the file without its ending.
        seed: of random draws.
        fps: the rate of images, where neither `times.json` nor the truth says it.
        on_bad: told of a video of a folder that cannot be used, which is then left out.
    """
    import dataclasses

    from jostle.filing.files import read_truth
    from jostle.looking.detection import detect_features, grid_of, read_video_scores

    frames = looks_at_frames(detector)
    if frames and extractor is not None:
        raise BadValue(f"{type(detector).__name__} looks at frames itself; leave the extractor out")
    known = truth if truth is None or isinstance(truth, Truth) else read_truth(truth)
    scores = None if video_scores is None else read_video_scores(video_scores)
    if scores is not None:
        detector.config = dataclasses.replace(detector.config, class_names=scores.classes)
    elif known is not None:
        name_classes(detector, known)
    if extractor is None and not frames:
        if spec or placement is not None or segments is not None:
            raise BadValue("features cannot be corrupted any more: give the video and an extractor")
        return detect_features(
            detector,
            Path(source),
            grid_of(Path(source)) if grid is None else grid,
            truth=known,
            duration=duration,
            video_scores=scores,
            progress=progress,
        )
    from jostle.api.sources import rates_of, videos_and_corruptions
    from jostle.looking.video_detection import by_clips, by_features, detect_videos

    videos, corrupting = videos_and_corruptions(
        source, spec, placement, segments=segments, truth=known, subset=None, video_id=video_id, seed=seed
    )
    looking: Any = detector
    find = by_clips(looking, corrupting, scores)
    if extractor is not None:
        find = by_features(looking, extractor, corrupting, scores)
    return detect_videos(find, videos, rates=rates_of(videos, known, fps), on_bad=on_bad, progress=progress)
