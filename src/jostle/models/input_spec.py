"""What a model wants to be shown: sizes, crops and the scale of the values, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.errors import BadValue

Frames = npt.NDArray[np.uint8]
Crops = Literal["centre", "ten"]


@dataclass(frozen=True)
class InputSpec:
    """How frames become a model's input.

    Attributes:
        frames: length of a window, in frames.
        stride: frames from one window to the next.
        resize: (height, width) that every frame is brought to, whatever its shape; or the length of the short side,
            the shape kept; or None.
        size: height and width of a crop.
        crops: `centre`, or `ten`: four corners and the centre, each also mirrored.
        mean: subtracted from values in [0, 1], by colour.
        std: what the difference is divided by.
        fps: rate the video is re-timed to; None for its own.

    >>> spec = InputSpec(frames=2, stride=1, resize=None, size=4, crops="ten", mean=(0.5,) * 3, std=(0.5,) * 3)
    >>> spec.prepare(np.full((2, 6, 8, 3), 255, np.uint8)).shape
    torch.Size([10, 3, 2, 4, 4])
    """

    frames: int
    stride: int
    resize: tuple[int, int] | int | None
    size: int
    crops: Crops = "centre"
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    fps: float | None = None

    def prepare(self, frames: Frames | Tensor) -> Tensor:
        """(crops, 3, T, size, size) float32 from (T, H, W, 3) uint8."""
        video = self._normal(frames)
        cut = ten_crop(video, self.size) if self.crops == "ten" else centre_crop(video, self.size)[None]
        return cut.transpose(1, 2).contiguous()

    def prepare_frames(self, frames: Frames | Tensor) -> Tensor:
        """(T, 3, size, size) float32 from (T, H, W, 3) uint8: the centre of each frame, colours beside each other."""
        return centre_crop(self._normal(frames), self.size).contiguous(memory_format=torch.channels_last)

    def _normal(self, frames: Frames | Tensor) -> Tensor:
        """(T, 3, H, W) resized, in the model's scale of values."""
        video = torch.as_tensor(frames)
        if video.ndim != 4 or video.shape[-1] != 3 or video.dtype != torch.uint8:
            raise BadValue(f"frames must be (T, H, W, 3) uint8, not {tuple(video.shape)} {video.dtype}")
        video = resized(video.permute(0, 3, 1, 2).float(), self.resize)
        mean = torch.tensor(self.mean, device=video.device)[:, None, None]
        std = torch.tensor(self.std, device=video.device)[:, None, None]
        return video.div_(255).sub_(mean).div_(std)


def resized(video: Tensor, to: tuple[int, int] | int | None) -> Tensor:
    """(T, 3, H', W') bilinear; shrinking averages over what a pixel covers, so that fine texture does not flicker."""
    height, width = video.shape[-2:]
    if to is None:
        return video
    if isinstance(to, int):
        short = min(height, width)
        to = (round(height * to / short), round(width * to / short))
    if to == (height, width):
        return video
    return F.interpolate(video, to, mode="bilinear", align_corners=False, antialias=True)


def centre_crop(video: Tensor, size: int) -> Tensor:
    """(..., size, size) from the middle; of an odd margin the smaller half is above and to the left."""
    top, left = _margins(video, size)
    return video[..., top // 2 : top // 2 + size, left // 2 : left // 2 + size]


def ten_crop(video: Tensor, size: int) -> Tensor:
    """(10, ..., size, size): top left, top right, bottom left, bottom right, centre, then their mirror images."""
    bottom, right = _margins(video, size)
    corners = [video[..., y : y + size, x : x + size] for y in (0, bottom) for x in (0, right)]
    five = torch.stack([*corners, centre_crop(video, size)])
    return torch.cat([five, five.flip(-1)])


def _margins(video: Tensor, size: int) -> tuple[int, int]:
    height, width = video.shape[-2:]
    if min(height, width) < size:
        raise BadValue(f"a crop of {size}x{size} does not fit into frames of {width}x{height}; resize them first")
    return height - size, width - size
