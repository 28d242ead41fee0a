"""Which frames of a video a detector is shown, and where its clips begin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def frames_at(count: int, fps: float, own: float) -> npt.NDArray[np.int64]:
    """Which of `count` frames are shown at the rate `own`, as FFmpeg changes a rate.

    Each moment shows the last frame that is nearer to it than to the next moment; where the video has fewer frames they
    are shown more than once.

    >>> frames_at(15, 25.0, 5.0).tolist()
    [2, 7, 12]
    """
    moments = np.arange(max(int(np.floor(count * own / fps + 0.5)), 1))
    taken = np.ceil((moments + 0.5) * (fps / own) - 1e-9).astype(np.int64) - 1
    shown: npt.NDArray[np.int64] = np.clip(taken, 0, count - 1)
    return shown


def equally_apart(count: int, length: int, stride: int) -> list[int]:
    """First frames of clips that are equally far apart; the last may be short.

    >>> equally_apart(300, 256, 192)
    [0, 192]
    """
    return list(range(0, max(count - length + stride - 1, 0) // stride * stride + 1, stride))
