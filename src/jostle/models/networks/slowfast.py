"""SlowFast: one path sees few frames with many channels, another many frames with few, and tells the first.

Feichtenhofer et al., "SlowFast Networks for Video Recognition", ICCV 2019. Tensors are named as in PyTorchVideo.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.frame_convolution import Triple, convolution
from jostle.models.networks.pooled_head import DROPPED, window_means
from jostle.models.networks.video_resnet import EXPANSION, Stage, Stem, Times

Pair = tuple[Tensor, Tensor]  # what the slow and the fast path see


@dataclass(frozen=True)
class SlowFastConfig:
    """Settings of a network.

    Attributes:
        alpha: fast frames for each slow one.
        told_over: steps of the fast path that are told to the slow one together.
        windows: of the head, for the slow and the fast path.
        classes: told apart.
        depths: blocks of each stage.
        width: channels of the slow stem; the fast one has an eighth.
        times: by stage, how many steps the first convolution of a block of the slow path sees.
    """

    alpha: int = 4
    told_over: int = 7
    windows: tuple[Triple, Triple] = ((8, 7, 7), (32, 7, 7))
    classes: int = 400
    depths: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    times: Times = ((1,), (1,), (3,), (3,))


class Told(nn.Module):
    """What the fast path sees, put behind what the slow one sees: twice its channels at the slow path's steps."""

    def __init__(self, channels: int, over: int, alpha: int) -> None:
        super().__init__()
        self.conv_fast_to_slow = convolution(channels, 2 * channels, (over, 1, 1), (alpha, 1, 1))
        self.norm = nn.BatchNorm3d(2 * channels)

    def forward(self, both: Pair) -> Pair:
        """More channels of the slow path; the fast one as it was."""
        slow, fast = both
        told = F.relu(self.norm(self.conv_fast_to_slow(fast)), inplace=True)
        return torch.cat([slow, told], dim=1), fast


class Both(nn.Module):
    """The same part of both paths, and what one tells the other after it."""

    def __init__(self, slow: nn.Module, fast: nn.Module, told: Told | None = None) -> None:
        super().__init__()
        self.multipathway_blocks = nn.ModuleList([slow, fast])
        self.multipathway_fusion = nn.Identity() if told is None else told

    def forward(self, both: Pair) -> Pair:
        """What the paths see after this part."""
        slow, fast = self.multipathway_blocks
        made: Pair = self.multipathway_fusion((slow(both[0]), fast(both[1])))
        return made


class Joined(nn.Module):
    """Means of windows of both paths, beside each other."""

    def __init__(self, windows: tuple[Triple, Triple]) -> None:
        super().__init__()
        self.windows = windows

    def forward(self, both: Pair) -> Tensor:
        """(B, channels of both, t, h, w)."""
        return torch.cat([window_means(x, window) for x, window in zip(both, self.windows, strict=True)], dim=1)


class Head(nn.Module):
    """A classifier of the mean over places."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.drop = nn.Dropout(DROPPED)
        self.proj = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(B, classes) logits of (B, C, t, h, w)."""
        made: Tensor = self.proj(self.drop(x.mean((2, 3, 4))))
        return made


class SlowFast(nn.Module):
    """Both paths. It is given the fast path's frames, and picks the slow one's among them."""

    def __init__(self, config: SlowFastConfig = SlowFastConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        wide, narrow = config.width, config.width // 8
        stem = Both(Stem(3, wide, 1), Stem(3, narrow, 5), Told(narrow, config.told_over, config.alpha))
        blocks: list[nn.Module] = [stem]
        for number, (depth, times) in enumerate(zip(config.depths, config.times, strict=True)):
            out = EXPANSION * config.width * 2**number
            stride = (1, 1, 1) if number == 0 else (1, 2, 2)
            slow = Stage(wide + 2 * narrow, out, depth, times, stride)
            fast = Stage(narrow, out // 8, depth, (3,), stride)
            wide, narrow = out, out // 8
            last = number == len(config.depths) - 1
            blocks.append(Both(slow, fast, None if last else Told(narrow, config.told_over, config.alpha)))
        self.blocks = nn.Sequential(*blocks, Joined(config.windows), Head(wide + narrow, config.classes))

    def forward(self, clips: Tensor) -> Tensor:
        """(B, classes) logits of (B, 3, T, H, W)."""
        slow = clips[:, :, slow_frames(clips.shape[2], self.config.alpha)]
        made: Tensor = self.blocks((slow, clips))
        return made


def slow_frames(frames: int, alpha: int) -> list[int]:
    """Which of the fast path's frames the slow one sees: evenly spaced from the first to the last, rounded down.

    >>> slow_frames(32, 4)
    [0, 4, 8, 13, 17, 22, 26, 31]
    """
    count = max(frames // alpha, 1)
    return [i * (frames - 1) // max(count - 1, 1) for i in range(count)]


CONFIGS = {
    "slowfast_r50": SlowFastConfig(),
    "slowfast_r50_4x16": SlowFastConfig(alpha=8, told_over=5, windows=((4, 7, 7), (32, 7, 7))),
}
