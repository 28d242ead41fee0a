"""Pictures in the scale of networks that began with ImageNet."""

from __future__ import annotations

import torch
from torch import Tensor

MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # of red, green and blue


def imagenet_scaled(pictures: Tensor) -> Tensor:
    """(3, T, H, W) with the mean colour of ImageNet at 0, from values of 0 to 255.

    >>> imagenet_scaled(torch.full((3, 1, 1, 1), 128.0)).flatten().round(decimals=3).tolist()
    [0.07400000095367432, 0.20499999821186066, 0.4259999990463257]
    """
    mean, std = (torch.tensor(x, device=pictures.device)[:, None, None, None] for x in (MEAN, STD))
    return (pictures - mean) / std
