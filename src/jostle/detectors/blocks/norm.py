"""Normalisation: over the channels of a step, or over groups of channels of a whole sequence."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.levels import Level


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of each step; its affine part has shape (1, C, 1), as in ActionFormer's files."""

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(1, channels, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, x: Tensor, *, reuse: bool = False) -> Tensor:
        """The normed columns.

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
