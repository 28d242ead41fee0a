"""Preparation of frames for Qwen2-VL and Qwen2.5-VL without torchvision, which the library's own needs.

Frames are resized to multiples of a merged patch within limits of pixels, normalised and cut into patches that span two
frames. The numbers are those of the library, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.errors import BadValue, CheckpointError
from jostle.models.transformers_folder import read_settings

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
LONGEST_SHAPE = 200  # times the short side, at most
SHARE = 0.9  # of the assumed context length, that a video may fill
FLOOR = 1.05  # of the smallest number of pixels, which the cap keeps


@dataclass(frozen=True)
class QwenFrames:
    """Settings of the preparation, in the words of `video_preprocessor_config.json`."""

    shortest_edge: int = 128 * 28 * 28  # pixels of a frame, at least
    longest_edge: int = 28 * 28 * 768  # pixels of a frame, at most
    patch_size: int = 14
    temporal_patch_size: int = 2
    merge_size: int = 2
    image_mean: tuple[float, ...] = CLIP_MEAN
    image_std: tuple[float, ...] = CLIP_STD
    rescale_factor: float = 1 / 255
    max_video_tokens: int = 128_000

    @classmethod
    def read(cls, folder: Path) -> QwenFrames:
        """Read the settings of a model folder.

        Raises:
            CheckpointError: if they ask for something else than is done here.
        """
        settings = _read_video_settings(folder)
        for name in ("do_resize", "do_rescale", "do_normalize"):
            if settings.get(name, True) is not True:
                raise CheckpointError(f"{folder}: its settings turn {name} off; install torchvision to follow them")
        if settings.get("resample", 3) != 3:
            raise CheckpointError(f"{folder}: its frames are not resized bicubic; install torchvision to follow that")
        size = dict(settings.get("size") or {})
        for edge, older in (("shortest_edge", "min_pixels"), ("longest_edge", "max_pixels")):
            if settings.get(older) is not None:
                size[edge] = settings[older]
        names = ("patch_size", "temporal_patch_size", "merge_size", "rescale_factor", "max_video_tokens")
        known = {name: settings[name] for name in names if name in settings}
        known |= {name: tuple(settings[name]) for name in ("image_mean", "image_std") if name in settings}
        known |= {edge: int(size[edge]) for edge in ("shortest_edge", "longest_edge") if edge in size}
        return cls(**known)

    def prepare(self, frames: npt.NDArray[np.uint8], count: int | None = None) -> tuple[Tensor, Tensor]:
        """Return (patches, values) float32 and the (1, 3) grid in time, height and width, of (T, H, W, 3) uint8.

        Args:
            count: number of frames of the whole video, which decides the size; by default those given.
        """
        video = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2)
        to = self.resized_to(*video.shape[-2:], count=count or len(video))
        video = F.interpolate(video, to, mode="bicubic", antialias=True).float()
        scale = 1.0 / self.rescale_factor
        mean, std = (torch.tensor(values)[:, None, None] * scale for values in (self.image_mean, self.image_std))
        return self._cut(video.sub_(mean).div_(std))

    def prepare_parts(self, frames: npt.NDArray[np.uint8], parts: Sequence[int]) -> Tensor:
        """Return (parts, patches, values) of some parts of a video, each of the frames that a patch spans.

        The bits are those of `prepare`, as frames are prepared one by one and cut into patches a few at a time.
        """
        rows = frames_of_parts(parts, self.temporal_patch_size, len(frames))
        patches, _ = self.prepare(frames[rows], len(frames))
        return torch.unflatten(patches, 0, (len(parts), -1))

    def grid_of(self, frames: npt.NDArray[np.uint8]) -> Tensor:
        """Return the (1, 3) grid of a video in time, height and width."""
        count, *size = frames.shape[:3]
        height, width = self.resized_to(*size, count=count)
        return torch.tensor(
            [[-(-count // self.temporal_patch_size), height // self.patch_size, width // self.patch_size]]
        )

    def resized_to(self, height: int, width: int, *, count: int) -> tuple[int, int]:
        """Return (height, width) that frames are brought to: multiples of a merged patch, within the limits.

        >>> QwenFrames().resized_to(360, 640, count=16)
        (364, 644)
        """
        factor = self.patch_size * self.merge_size
        if max(height, width) > LONGEST_SHAPE * min(height, width):
            raise BadValue(f"frames of {height}x{width} are too long for the model: at most {LONGEST_SHAPE} to 1")
        budget = int(self.max_video_tokens * factor * factor * SHARE) * self.temporal_patch_size // count
        largest = max(min(self.longest_edge, budget), int(self.shortest_edge * FLOOR))
        rounded = round(height / factor) * factor, round(width / factor) * factor
        if rounded[0] * rounded[1] > largest:
            shrink = math.sqrt(height * width / largest)
            return tuple(max(factor, math.floor(n / shrink / factor) * factor) for n in (height, width))  # type: ignore[return-value]
        if rounded[0] * rounded[1] < self.shortest_edge:
            grow = math.sqrt(self.shortest_edge / (height * width))
            return tuple(math.ceil(n * grow / factor) * factor for n in (height, width))  # type: ignore[return-value]
        return rounded

    def _cut(self, video: Tensor) -> tuple[Tensor, Tensor]:
        """Cut (T, 3, H, W) into patches; those of one merged patch follow each other."""
        time, side, merged = self.temporal_patch_size, self.patch_size, self.merge_size
        if lacking := -len(video) % time:
            video = torch.cat([video, video[-1:].expand(lacking, -1, -1, -1)])
        grid = len(video) // time, video.shape[2] // side, video.shape[3] // side
        split = video.view(grid[0], time, 3, grid[1] // merged, merged, side, grid[2] // merged, merged, side)
        patches = split.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(math.prod(grid), 3 * time * side * side)
        return patches, torch.tensor([grid])


def changed_parts(frames: npt.NDArray[np.uint8], before: npt.NDArray[np.uint8], span: int) -> list[int]:
    """Return the numbers of the parts, of `span` frames, in which a video differs from one of the same shape."""
    begins = range(0, len(frames), span)
    return [i // span for i in begins if not np.array_equal(frames[i : i + span], before[i : i + span])]


def frames_of_parts(parts: Sequence[int], span: int, count: int) -> list[int]:
    """Return the indices of the frames of some parts; where the last part lacks frames, the last frame is repeated.

    >>> frames_of_parts([0, 2], 2, 5)
    [0, 1, 4, 4]
    """
    return [min(part * span + i, count - 1) for part in parts for i in range(span)]


def _read_video_settings(folder: Path) -> Mapping[str, Any]:
    """Return the settings of videos, from the file that the library would take them from."""
    nested = folder / "processor_config.json"
    if nested.is_file() and isinstance(settings := read_settings(nested, "processor").get("video_processor"), dict):
        return settings
    for name in ("video_preprocessor_config.json", "preprocessor_config.json"):
        if (folder / name).is_file():
            return read_settings(folder / name, "processor")
    return {}
