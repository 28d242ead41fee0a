"""SlowFast: a slow path with many channels and a fast path with few, joined by lateral connections.

Feichtenhofer et al., "SlowFast Networks for Video Recognition", ICCV 2019. Tensors are named as in PyTorchVideo.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.layers import ONE, Head, Triple, convolution, window_means
from jostle.models.networks.video_resnet import EXPANSION, Times, VideoStem, stem_convolution, video_stage

Pair = tuple[Tensor, Tensor]  # what the slow and the fast path see


@dataclass(frozen=True)
class SlowFastConfig:
    """Settings of a SlowFast network.

    Attributes:
        alpha: fast frames for each slow one.
        fusion_kernel: kernel of the lateral connections over time.
        windows: of the head, for the slow and the fast path.
        classes: number of classes.
        depths: blocks of each stage.
        width: channels of the slow stem; the fast one has an eighth.
        times: by stage, how many steps the first convolution of a block of the slow path sees.
    """

    alpha: int = 4
    fusion_kernel: int = 7
    windows: tuple[Triple, Triple] = ((8, 7, 7), (32, 7, 7))
    classes: int = 400
    depths: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    times: Times = ((1,), (1,), (3,), (3,))


class LateralFusion(nn.Module):
    """Lateral connection: fast features at the slow path's steps, appended with twice the channels."""

    def __init__(self, channels: int, over: int, alpha: int) -> None:
        super().__init__()
        self.conv_fast_to_slow = convolution(channels, 2 * channels, (over, 1, 1), (alpha, 1, 1))
        self.norm = nn.BatchNorm3d(2 * channels)

    def forward(self, both: Pair) -> Pair:
        """Return the slow path with additional channels, and the fast path unchanged."""
        slow, fast = both
        lateral = F.relu(self.norm(self.conv_fast_to_slow(fast)), inplace=True)
        return torch.cat([slow, lateral], dim=1), fast


class PathwayPair(nn.Module):
    """The same part of both paths, followed by their lateral connection."""

    def __init__(self, slow: nn.Module, fast: nn.Module, fusion: LateralFusion | None = None) -> None:
        super().__init__()
        self.multipathway_blocks = nn.ModuleList([slow, fast])
        self.multipathway_fusion = nn.Identity() if fusion is None else fusion

    def forward(self, both: Pair) -> Pair:
        """Return the features of both paths after this part."""
        slow, fast = self.multipathway_blocks
        outputs: Pair = self.multipathway_fusion((slow(both[0]), fast(both[1])))
        return outputs


class PathwayPool(nn.Module):
    """Sliding-window means of both paths, concatenated."""

    def __init__(self, windows: tuple[Triple, Triple]) -> None:
        super().__init__()
        self.windows = windows

    def forward(self, both: Pair) -> Tensor:
        """Return a tensor of shape (B, channels of both, t, h, w)."""
        return torch.cat([window_means(x, window) for x, window in zip(both, self.windows, strict=True)], dim=1)


class SlowFast(nn.Module):
    """SlowFast network; it takes the fast path's frames, and selects the slow path's among them."""

    def __init__(self, config: SlowFastConfig = SlowFastConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        wide, narrow = config.width, config.width // 8
        stems = VideoStem(stem_convolution(wide, 1), wide), VideoStem(stem_convolution(narrow, 5), narrow)
        blocks: list[nn.Module] = [PathwayPair(*stems, LateralFusion(narrow, config.fusion_kernel, config.alpha))]
        for number, (depth, times) in enumerate(zip(config.depths, config.times, strict=True)):
            out = EXPANSION * config.width * 2**number
            stride = ONE if number == 0 else (1, 2, 2)
            slow = video_stage(wide + 2 * narrow, out, depth, times, stride)
            fast = video_stage(narrow, out // 8, depth, (3,), stride)
            wide, narrow = out, out // 8
            last = number == len(config.depths) - 1
            blocks.append(
                PathwayPair(slow, fast, None if last else LateralFusion(narrow, config.fusion_kernel, config.alpha))
            )
        self.blocks = nn.Sequential(*blocks, PathwayPool(config.windows), Head(wide + narrow, config.classes))

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        slow = clips[:, :, slow_frames(clips.shape[2], self.config.alpha)]
        output: Tensor = self.blocks((slow, clips))
        return output


def slow_frames(frames: int, alpha: int) -> list[int]:
    """Return the indices of the slow path's frames: evenly spaced from first to last, rounded down.

    >>> slow_frames(32, 4)
    [0, 4, 8, 13, 17, 22, 26, 31]
    """
    count = max(frames // alpha, 1)
    return [i * (frames - 1) // max(count - 1, 1) for i in range(count)]


CONFIGS = {
    "slowfast_r50": SlowFastConfig(),
    "slowfast_r50_4x16": SlowFastConfig(alpha=8, fusion_kernel=5, windows=((4, 7, 7), (32, 7, 7))),
}
