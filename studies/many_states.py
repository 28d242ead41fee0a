"""What a detector finds in many states of one film, which it looks at together: a GPU is hardly busy with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.segments import Segments
from jostle.models.detection.decoding import in_seconds
from jostle.models.detection.outputs import Candidates

STRIDE, WINDOW = 4, 16  # of the rows of `puppet_net`


def find_in_states(
    detector: Any, states: Sequence[npt.NDArray[np.float32]], *, fps: float, duration: float
) -> list[Segments]:
    """The segments of each state as `detector.detect` has them, up to what a sum in another order changes.

    Args:
        detector: one of features that does not stretch them.
        states: (T, C) rows each, all of one film and so as many.
    """
    import torch

    (count,) = {len(rows) for rows in states}
    assert not detector.config.stretches
    found: list[list[Candidates]] = [[] for _ in states]
    for first, many in detector.windows(count):
        assert detector.steps(many) == many
        rows, lengths = detector.batch([state[first : first + many] for state in states])
        with torch.inference_mode():
            parts = detector.decode(detector.infer(detector.forward, rows, lengths))
        for own, part in zip(found, parts, strict=True):
            own.append(Candidates(part.segments + np.float32(first), part.scores, part.labels))
    told = []
    for own in found:
        segments, scores, labels = (
            np.concatenate([getattr(part, column) for part in own]) for column in ("segments", "scores", "labels")
        )
        kept = detector.suppress(Candidates(segments, scores, labels), seconds_a_step=STRIDE / fps)
        kept, classes = detector.named(kept)
        centre = WINDOW - 2 * detector.row_centre * STRIDE
        told.append(in_seconds(kept, fps=fps, duration=duration, stride=STRIDE, window=centre, classes=classes))
    return told
