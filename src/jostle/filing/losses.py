"""What a format cannot hold of the things it is given, named so that nothing is lost unsaid."""

from __future__ import annotations

import numpy as np

from jostle.filing.format import Format
from jostle.types.columns import Indices
from jostle.types.predictions import Predictions
from jostle.types.truth import Truth
from jostle.types.video_labels import VideoLabels


def lost_of_truth(truth: Truth, format: Format) -> tuple[str, ...]:
    """What `truth` has and the format cannot hold, as messages say it."""
    known = {
        "subset": ("the subsets of videos", any(truth.subsets)),
        "duration": ("the durations of videos", bool(np.isfinite(truth.duration).any())),
        "fps": ("the rates of videos", bool(np.isfinite(truth.fps).any())),
        "label_ids": ("the numbers of classes", truth.label_ids is not None),
        "characteristics": (f"the characteristics {', '.join(truth.characteristics)}", bool(truth.characteristics)),
        "all_segments": ("the segments of several annotators", truth.all_segments is not None),
        "ambiguous": (f"{len(truth.ambiguous)} ambiguous stretches", len(truth.ambiguous) > 0),
    }
    lost = [said for name, (said, has) in known.items() if has and name not in format.holds]
    mentioned = {*truth.video.tolist(), *(truth.ambiguous.video.tolist() if "ambiguous" in format.holds else ())}
    return (*lost, *_of_rows(len(truth.videos), mentioned, truth.video, format))


def lost_of_predictions(predictions: Predictions, format: Format) -> tuple[str, ...]:
    """What `predictions` has and the format cannot hold, as messages say it."""
    lost = []
    if not predictions.numbered and "names" not in format.holds:
        lost.append("the names of classes")
    if predictions.numbered and "numbers" not in format.holds:
        lost.append("that labels are numbers")
    mentioned = set(predictions.video.tolist())
    return (*lost, *_of_rows(len(predictions.videos), mentioned, predictions.video, format))


def lost_of_labels(labels: VideoLabels, format: Format) -> tuple[str, ...]:
    """What `labels` has and the format cannot hold, as messages say it."""
    known = {
        "paths": ("the paths of videos", bool(labels.paths)),
        "frames": ("the frames of videos", len(labels.frames) > 0),
        "scores": ("the scores", labels.score is not None),
        "true": ("that labels are true, not scored", labels.score is None),
        "numbers": ("that labels are numbers", labels.numbered),
    }
    return tuple(said for name, (said, has) in known.items() if has and name not in format.holds)


def _of_rows(videos: int, mentioned: set[int], video: Indices, format: Format) -> list[str]:
    lost = []
    empty = videos - len(mentioned)
    if empty and "empty_videos" not in format.holds:
        lost.append(f"{empty} video(s) without a row")
    if "row_order" not in format.holds and len(video) and (np.diff(video) < 0).any():
        lost.append("the order of rows across videos")
    return lost
