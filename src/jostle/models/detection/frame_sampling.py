"""Frame sampling of frame detectors: resampled rates, and the starts of clips."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def resample_indices(count: int, fps: float, own: float) -> npt.NDArray[np.int64]:
    """Return which of `count` frames are used at the rate `own`, as FFmpeg resamples.

    Each moment shows the last frame that is nearer to it than to the next moment; where the video has fewer frames they
    are repeated.

    >>> resample_indices(15, 25.0, 5.0).tolist()
    [2, 7, 12]
    """
    moments = np.arange(max(int(np.floor(count * own / fps + 0.5)), 1))
    indices = np.ceil((moments + 0.5) * (fps / own) - 1e-9).astype(np.int64) - 1
    clipped: npt.NDArray[np.int64] = np.clip(indices, 0, count - 1)
    return clipped


def evenly_spaced_clips(count: int, length: int, stride: int) -> list[int]:
    """Return the first frames of evenly spaced clips; the last may be short.

    >>> evenly_spaced_clips(300, 256, 192)
    [0, 192]
    """
    return list(range(0, max(count - length + stride - 1, 0) // stride * stride + 1, stride))


MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # of red, green and blue


def imagenet_normalise(pictures: Tensor) -> Tensor:
    """Return (3, T, H, W) with the mean colour of ImageNet at 0, from values of 0 to 255.

    >>> imagenet_normalise(torch.full((3, 1, 1, 1), 128.0)).flatten().round(decimals=3).tolist()
    [0.07400000095367432, 0.20499999821186066, 0.4259999990463257]
    """
    mean, std = (torch.tensor(x, device=pictures.device)[:, None, None, None] for x in (MEAN, STD))
    return (pictures - mean) / std
