"""Layers of the video networks: a 3D convolution computed frame by frame on a CPU, and the classification head.

2D kernels are much faster than 3D ones on a CPU. Measured on x86-64 and ARM, one thread: filters over space in half the
time, those of 3x3x3 places in a quarter to four fifths, of single channels in a tenth to three quarters. On a GPU it is
the library's own, and so it is where gradients are wanted: those of filters of single channels took twice as long in
two dimensions.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Triple = tuple[int, int, int]  # over time, height, width
ONE: Triple = (1, 1, 1)
DROPPED = 0.5  # share of the features that is left out in training


class FrameConvolution(nn.Conv3d):
    """A `torch.nn.Conv3d` of odd length in time that keeps the edges, with the same weights."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, out, T', H', W'), on a CPU with channels beside each other in memory."""
        if x.device.type != "cpu" or torch.is_grad_enabled():
            return super().forward(x)
        x = x.contiguous(memory_format=torch.channels_last_3d)
        if self.kernel_size[1:] == (1, 1) and self.stride[1:] == (1, 1) and self.kernel_size[0] > 1:
            return self._over_time(x)
        return self._over_space(x)

    def _over_time(self, x: Tensor) -> Tensor:
        """Convolve over time, with space flattened to one axis."""
        flat = x.flatten(3)  # (B, C, T, H * W)
        around, stride = (int(self.padding[0]), 0), (self.stride[0], 1)
        output = F.conv2d(flat, self.weight.squeeze(4), self.bias, stride, around, groups=self.groups)
        return torch.unflatten(output, 3, x.shape[3:])

    def _over_space(self, x: Tensor) -> Tensor:
        """Sum a 2D convolution for each temporal step of the kernel."""
        clips = x.transpose(1, 2)  # (B, T, C, H, W)
        length, step, middle = x.shape[2], self.stride[0], self.kernel_size[0] // 2
        output = self._seen(clips[:, ::step], middle, self.bias)
        for tap in range(self.kernel_size[0]):
            if tap == middle:
                continue
            # Of the frames that are given, those whose frame `tap - middle` further on is in the clip.
            first = max(-((tap - middle) // step), 0)
            count = (length - 1 - (tap - middle)) // step + 1 - first
            count = min(count, output.shape[1] - first)
            if count > 0:
                begin = first * step + tap - middle
                frames = clips[:, begin : begin + (count - 1) * step + 1 : step]
                output[:, first : first + count] += self._seen(frames, tap, None)
        return output.transpose(1, 2)

    def _seen(self, clips: Tensor, tap: int, bias: Tensor | None) -> Tensor:
        """Return (B, T, out, H', W') of (B, T, C, H, W)."""
        height, width = self.stride[1:]
        around = (int(self.padding[1]), int(self.padding[2]))
        frames = clips.flatten(0, 1)
        output = F.conv2d(frames, self.weight[:, :, tap], bias, (height, width), around, groups=self.groups)
        return torch.unflatten(output, 0, clips.shape[:2])


def convolution(
    channels: int, out: int, size: Triple, stride: Triple = ONE, *, groups: int = 1, bias: bool = False
) -> FrameConvolution:
    """Return a convolution with "same" padding."""
    around = (size[0] // 2, size[1] // 2, size[2] // 2)
    return FrameConvolution(channels, out, size, stride, around, groups=groups, bias=bias)


def named(**modules: nn.Module) -> nn.Sequential:
    """Return modules in sequence, under names of their own."""
    return nn.Sequential(OrderedDict(modules))


def window_means(x: Tensor, window: Triple) -> Tensor:
    """Return (B, C, t, h, w) means of a window that slides by single places; of a smaller map, its mean.

    The window is the map of a training crop. Larger test crops are seen through it place by place, and one mean over
    all of their map would weigh the edges otherwise.
    """
    size = [min(side, there) for side, there in zip(window, x.shape[2:], strict=True)]
    if size == list(x.shape[2:]):
        return x.mean((2, 3, 4), keepdim=True)
    return F.avg_pool3d(x, size, stride=1)


class WindowMeans(nn.Module):
    """Sliding-window means of a map."""

    def __init__(self, window: Triple) -> None:
        super().__init__()
        self.window = window

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, C, t, h, w) of (B, C, T, H, W)."""
        return window_means(x, self.window)


class Head(nn.Module):
    """Linear classifier of features (B, C), or of the mean of a map (B, C, T, H, W), after an optional pool."""

    def __init__(self, channels: int, classes: int, pool: nn.Module | None = None) -> None:
        super().__init__()
        self.pool = pool
        self.drop = nn.Dropout(DROPPED)
        self.proj = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, classes) logits."""
        x = x if self.pool is None else self.pool(x)
        output: Tensor = self.proj(self.drop(x.mean((2, 3, 4)) if x.ndim == 5 else x))
        return output
