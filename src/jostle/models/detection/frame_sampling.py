"""Which frames of a video a detector is shown, and where its clips begin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


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


MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # of red, green and blue


def imagenet_scaled(pictures: Tensor) -> Tensor:
    """(3, T, H, W) with the mean colour of ImageNet at 0, from values of 0 to 255.

    >>> imagenet_scaled(torch.full((3, 1, 1, 1), 128.0)).flatten().round(decimals=3).tolist()
    [0.07400000095367432, 0.20499999821186066, 0.4259999990463257]
    """
    mean, std = (torch.tensor(x, device=pictures.device)[:, None, None, None] for x in (MEAN, STD))
    return (pictures - mean) / std
