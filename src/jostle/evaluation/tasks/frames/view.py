"""Classes predicted for the frames of a video, clean and under a corruption."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.core.types.frame_sets import FrameSets
from jostle.core.types.score_table import ScoreTable
from jostle.evaluation.tasks.similar_frames import video_of
from jostle.evaluation.tasks.views import FrameAnswer, FrameSetAnswers, FrameSetsView


def draw_frame_sets(
    video: str, annotations: FrameSets, sides: Sequence[ScoreTable], k: int, held_to_anchor: bool
) -> FrameSetsView:
    """Return the sets of frames of a video.

    Args:
        sides: scores of frames, clean and corrupted.
        k: radius of the sets in frames.
        held_to_anchor: whether frames are compared with the labels of their anchor.
    """
    clean, corrupted = (dict(zip(side.names, side.scores.argmax(axis=1).tolist(), strict=True)) for side in sides)

    def answer(frame: str, anchor: str) -> FrameAnswer:
        labels = annotations.labels[anchor if held_to_anchor else frame]
        classes = (labels,) if isinstance(labels, int) else tuple(labels)
        return FrameAnswer(frame, classes, clean.get(frame), corrupted.get(frame))

    sets = tuple(
        FrameSetAnswers(answer(anchor, anchor), tuple(answer(frame, anchor) for frame in others))
        for anchor, others in annotations.sets.items()
        if video_of(anchor) == video
    )
    return FrameSetsView(video, k, sets)
