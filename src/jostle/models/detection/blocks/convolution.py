"""Convolutions and normalisation layers of the detectors."""

from __future__ import annotations

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.levels import Level
from jostle.models.networks.layers import named


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of each step; its affine part has shape (1, C, 1), as in ActionFormer's files."""

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(1, channels, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, x: Tensor, *, reuse: bool = False) -> Tensor:
        """Return the normalised columns of the sequence.

        Args:
            reuse: nobody needs `x` any more. Without gradients its memory is then taken for the result: on a CPU fresh
                memory costs more than the arithmetic.
        """
        if x.is_cuda:
            # Channels come last from here on, which is how tensor cores want them; the next layer keeps the order.
            last = F.layer_norm(x.transpose(1, 2), (x.shape[1],), self.weight.flatten(), self.bias.flatten(), self.eps)
            return last.transpose(1, 2).to(x.dtype)
        # On a CPU the transposed copies would cost more than these passes.
        wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        mean = wide.mean(1, keepdim=True)  # (B, 1, T)
        if torch.is_grad_enabled():
            centred = wide - mean
            scale = torch.rsqrt(centred.square().mean(1, keepdim=True) + self.eps)
            return torch.addcmul(self.bias, centred * scale, self.weight).to(x.dtype)
        centred = wide.sub_(mean) if reuse else wide - mean
        scale = torch.rsqrt(centred.square().mean(1, keepdim=True) + self.eps)
        return centred.mul_(scale).mul_(self.weight).add_(self.bias).to(x.dtype)


class SequenceGroupNorm(nn.Module):
    """GroupNorm over a padded sequence of which only a part is computed.

    The columns that are left out all equal `level.constant`, so their share of mean and variance is known: two sets
    of n1 and n2 numbers with means m1, m2 and squared deviations q1, q2 have together the mean m1 + d n2 / n and the
    squared deviation q1 + q2 + d^2 n1 n2 / n, where d = m2 - m1 and n = n1 + n2.

    Args:
        groups: channels are normalised in this many groups.
        affine: learn a scale and a shift for each channel.
    """

    def __init__(self, groups: int, channels: int, *, affine: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = nn.Parameter(torch.zeros(channels)) if affine else None

    def forward(self, x: Tensor, level: Level) -> Tensor:
        if not level.missing:
            return F.group_norm(x, self.groups, self.weight, self.bias, self.eps)
        batch, channels, columns = x.shape
        wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        size = channels // self.groups
        mean, spread = _moments(wide.reshape(batch, self.groups, size * columns))  # (B, groups, 1)
        other = level.constant(wide).reshape(batch, self.groups, size)
        other_mean, other_spread = _moments(other)
        count, other_count, total = columns, level.missing, level.padded
        shift = other_mean - mean
        spread = (
            spread * count + other_spread * other_count + shift.square() * (count * other_count / total)
        ) / total  # the counts are of columns; every column has `size` numbers
        mean = mean + shift * (other_count / total)
        scale = torch.rsqrt(spread + self.eps).expand(-1, -1, size).reshape(batch, channels, 1)
        mean = mean.expand(-1, -1, size).reshape(batch, channels, 1)
        if self.weight is not None and self.bias is not None:
            scale = scale * self.weight[:, None]
            return torch.addcmul(self.bias[:, None] - mean * scale, wide, scale).to(x.dtype)
        return torch.addcmul(-mean * scale, wide, scale).to(x.dtype)


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return mean, variance


class MaskedConv(nn.Module):
    """Conv1d with an odd kernel, centred, times the mask of its output.

    Args:
        depthwise: one filter a channel, as many outputs as inputs.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, bias: bool = True, depthwise: bool = False
    ) -> None:
        super().__init__()
        groups = inputs if depthwise else 1
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=bias)
        if self.conv.bias is not None:
            nn.init.zeros_(self.conv.bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        output: Tensor = self.conv(x)  # (B, outputs, T / stride)
        return output.mul_(mask.to(output.dtype))


def pointwise(inputs: int, outputs: int) -> nn.Conv1d:
    """Return a convolution of kernel 1 whose bias starts at zero, as every bias of these networks does."""
    conv = nn.Conv1d(inputs, outputs, 1)
    assert conv.bias is not None
    torch.nn.init.zeros_(conv.bias)
    return conv


GROUPS = 32


def batch_normed(inputs: int, outputs: int, kernel: int, *, relu: bool) -> nn.Sequential:
    """Return a convolution `conv` and a batch norm `bn`, optionally followed by ReLU."""
    conv = nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return named(conv=conv, bn=nn.BatchNorm1d(outputs), relu=nn.ReLU(inplace=True) if relu else nn.Identity())


def group_normed(inputs: int, outputs: int) -> nn.Sequential:
    """Return a convolution `conv` of kernel 3, a group norm `gn` and ReLU."""
    conv = nn.Conv1d(inputs, outputs, 3, padding=1, bias=False)
    return named(conv=conv, gn=nn.GroupNorm(GROUPS, outputs), relu=nn.ReLU(inplace=True))


class HalvingConv(nn.Module):
    """Convolution that halves time at every position; its norm keeps its statistics in training."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, (3, 1, 1), (2, 1, 1), (1, 0, 0), bias=False)
        self.bn = nn.BatchNorm3d(outputs)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, outputs, T / 2, H, W)."""
        output: Tensor = self.relu(self.bn(self.conv(x)))
        return output

    def train(self, mode: bool = True) -> Self:
        """Set the training mode, except for the statistics of the norm."""
        super().train(mode)
        self.bn.eval()
        return self


class SameConv(nn.Module):
    """Convolution over time with "same" padding; an odd zero is appended at the end."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1d = nn.Conv1d(inputs, outputs, kernel, stride)
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        total = max((-(-length // self.stride) - 1) * self.stride + self.kernel - length, 0)
        output: Tensor = self.conv1d(F.pad(x, (total // 2, total - total // 2)))
        return output


class WholeFrame(nn.Module):
    """Convolution over a whole map (B, C, T, size, size) at each step, giving (B, outputs, T)."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(inputs, outputs, (1, size, size))

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.conv3d(x)[..., 0, 0]
        return output


def normed(conv: nn.Module, outputs: int) -> nn.Sequential:
    """Return the convolution, followed by group norm and ReLU."""
    return nn.Sequential(conv, nn.GroupNorm(GROUPS, outputs), nn.ReLU(inplace=True))


def same(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Return a padded convolution, a norm, ReLU."""
    return normed(SameConv(inputs, outputs, kernel, stride), outputs)


class LearnedScaleVector(nn.Module):
    """Learned scalar, stored with shape (1,)."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


KERNEL = 3


class DeformableConv(nn.Module):
    """Deformable convolution of three taps with learned offsets and modulation.

    Between two steps it sees their linear mixture, outside the clip nothing. Tensors are named as in BasicTAD.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, KERNEL, KERNEL)  # over places laid side by side
        self.p_conv = nn.Conv1d(inputs, KERNEL, KERNEL, padding=KERNEL // 2)
        self.m_conv = nn.Conv1d(inputs, KERNEL, KERNEL, padding=KERNEL // 2)
        nn.init.zeros_(self.p_conv.weight)
        nn.init.zeros_(self.m_conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, outputs, T)."""
        batch, _, steps = x.shape
        at = torch.arange(steps, device=x.device) + torch.arange(KERNEL, device=x.device)[:, None] - KERNEL // 2
        place = (
            (at + self.p_conv(x).float()).transpose(1, 2).reshape(batch, -1)
        )  # (B, T * 3), places of a step together
        share = self.m_conv(x).sigmoid().transpose(1, 2).reshape(batch, 1, -1)
        output: Tensor = self.conv(sampled(x, place) * share)
        return output


def sampled(x: Tensor, place: Tensor) -> Tensor:
    """Return (B, C, P) of (B, C, T) at places (B, P) in steps: the linear mixture of two neighbours, 0 outside.

    >>> sampled(torch.tensor([[[0.0, 10.0, 20.0]]]), torch.tensor([[0.5, 2.0, 2.5, -3.0]])).tolist()
    [[[5.0, 20.0, 10.0, 0.0]]]
    """
    steps = x.shape[-1]
    before = place.detach().floor()
    later = (place - before).to(x.dtype)
    output = torch.zeros((), dtype=x.dtype, device=x.device)
    for index, weight in ((before, 1 - later), (before + 1, later)):
        inside = (index >= 0) & (index < steps)
        row = index.clamp(0, steps - 1).long()[:, None].expand(-1, x.shape[1], -1)
        output = output + x.gather(-1, row) * (weight * inside)[:, None]
    return output
