"""Blocks that mix a sequence over time: local attention (ActionFormer), and its convolutional replacement (TriDet).

In attention every query sees the keys at most `window // 2` steps away. Queries are taken in blocks: a block of 32
meets the 32 + 18 keys around it in one small product, so nothing but the overlap of neighbouring blocks is copied, and
the scores outside the band are the only ones computed in vain.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.convolution import ChannelNorm, MaskedConv, SequenceGroupNorm, pointwise
from jostle.models.detection.blocks.levels import Level
from jostle.models.detection.blocks.pyramid import drop_path, halve

BLOCK = 32  # queries in a block; 16 to 64 are equally fast on a CPU


class ConvAttention(nn.Module):
    """Multi-head attention whose query, key and value are depthwise convolution, norm and projection of the input.

    Args:
        stride: 2 lets the convolutions halve time.
        window: odd number of keys a query sees; 1 or less means all of them.
    """

    def __init__(self, dim: int, heads: int, *, stride: int, window: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.reach = heads, window // 2 if window > 1 else 0
        for name in ("query", "key", "value"):
            self.add_module(f"{name}_conv", MaskedConv(dim, dim, 3, stride=stride, bias=False, depthwise=True))
            self.add_module(f"{name}_norm", ChannelNorm(dim))
        for name in ("query", "key", "value", "proj"):
            self.add_module(name, pointwise(dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, level: Level) -> Tensor:
        """Return (B, D, columns) of `level` from the normed columns of the level above."""
        mask = level.mask
        q, k, v = (self._projected(name, x, mask) for name in ("query", "key", "value"))  # (B, heads, d, T)
        if q.is_cpu and q.dtype == torch.bfloat16:
            # Many processors cannot multiply matrices of bfloat16; torch then warns and takes a slow way round.
            with torch.autocast("cpu", enabled=False):
                mixed = self._mixed(q.float(), k.float(), v.float(), mask)
        else:
            mixed = self._mixed(q, k, v, mask)
        output: Tensor = self.dropout(self.get_submodule("proj")(mixed.flatten(1, 2)))
        return output.mul_(mask.to(output.dtype))

    def _mixed(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        if self.reach:
            return banded_attention(q, k, v, mask, self.reach)
        return F.scaled_dot_product_attention(q.mT, k.mT, v.mT, attn_mask=mask[:, :, None]).mT

    def _projected(self, name: str, x: Tensor, mask: Tensor) -> Tensor:
        x = self.get_submodule(f"{name}_norm")(self.get_submodule(f"{name}_conv")(x, mask), reuse=True)
        output: Tensor = self.get_submodule(name)(x)
        return output.view(output.shape[0], self.heads, -1, output.shape[-1])


def banded_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, reach: int) -> Tensor:
    """Return (B, heads, d, T) where each step attends to the valid steps at most `reach` away.

    Args:
        q: (B, heads, d, T) queries; keys and values likewise.
        mask: (B, 1, T) valid steps. What comes out at others means nothing.
    """
    steps, size = q.shape[-1], BLOCK + 2 * reach
    blocks = -(-steps // BLOCK)
    spare = blocks * BLOCK - steps
    q = F.pad(q * q.shape[2] ** -0.5, (0, spare)).unfold(-1, BLOCK, BLOCK)  # (B, heads, d, blocks, BLOCK)
    k, v = (F.pad(x, (reach, spare + reach)).unfold(-1, size, BLOCK) for x in (k, v))  # (B, heads, d, blocks, size)
    visible = F.pad(mask, (reach, spare + reach)).unfold(-1, size, BLOCK)[..., None, :]  # (B, 1, blocks, 1, size)
    query = torch.arange(BLOCK, device=q.device)[:, None]
    key = torch.arange(size, device=q.device)
    band = (key >= query) & (key <= query + 2 * reach)  # (BLOCK, size)
    scores = q.permute(0, 1, 3, 4, 2) @ k.transpose(2, 3)  # (B, heads, blocks, BLOCK, size)
    # The least finite number rather than minus infinity: a query in the padding may see nothing at all.
    scores = scores.masked_fill(~(band & visible), torch.finfo(scores.dtype).min)
    mixed = v.transpose(2, 3) @ scores.softmax(-1).mT  # (B, heads, blocks, d, BLOCK)
    return mixed.transpose(2, 3).flatten(-2)[..., :steps]


GROUPS = 16  # of the norm before the feed-forward part


def wide_kernel(window: int, k: float) -> int:
    """Return the length of the wide convolution beside one of `window`: (window + 1) k, made odd."""
    kernel = round((window + 1) * k)
    return kernel + 1 - kernel % 2


def reach_of(window: int, k: float) -> int:
    """Return the number of columns that a block covers to either side."""
    return max(window, wide_kernel(window, k)) // 2


class Depthwise(nn.Module):
    """Depthwise convolution with one filter and one bias per channel.

    Args:
        spread: standard deviation of the weights at the start.
    """

    def __init__(self, dim: int, kernel: int, spread: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim, 1, kernel).normal_(0.0, spread))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        kernel = self.weight.shape[-1]
        if kernel == 1:  # as a convolution this would be one small call a channel
            return torch.addcmul(self.bias[:, None], x, self.weight[:, 0])
        return F.conv1d(x, self.weight, self.bias, padding=kernel // 2, groups=x.shape[1])


class SGPBlock(nn.Module):
    """An instant branch gated by the mean of the video, and a window branch gated by a convolution.

    None of it is masked but the residual, and both the mean and the group norm run over the padded sequence: the
    padding is part of what the published weights have learned. `Level` accounts for the columns not computed.

    Args:
        halves: pool time by two first.
        spread: standard deviation of the depthwise weights at the start.
        drop: drop-path rate of both residual branches; 0 leaves the scales out.
    """

    def __init__(
        self, dim: int, *, window: int, k: float, mlp_dim: int, halves: bool, spread: float, drop: float
    ) -> None:
        super().__init__()
        self.halves = halves
        self.ln = ChannelNorm(dim)
        self.gn = SequenceGroupNorm(GROUPS, dim)
        self.psi = Depthwise(dim, window, spread)
        self.fc = Depthwise(dim, 1, spread)
        self.convw = Depthwise(dim, window, spread)
        self.convkw = Depthwise(dim, wide_kernel(window, k), spread)
        self.global_fc = Depthwise(dim, 1, spread)
        self.mlp = nn.Sequential(pointwise(dim, mlp_dim), nn.GELU(), pointwise(mlp_dim, dim))
        self.drop_path_out = drop_path(dim, drop)
        self.drop_path_mlp = drop_path(dim, drop)

    def forward(self, x: Tensor, level: Level) -> Tensor:
        """Return (B, D, columns) of `level`; the input is of the level above where the block halves."""
        if self.halves:
            x = level.grow(halve(x))
        y = self.ln(x)
        whole = F.relu(self.global_fc(level.mean(y)))  # (B, D, 1)
        # fc(y) whole + y, with the factors of y put together first
        z = torch.addcmul(self.fc.bias[:, None] * whole, y, self.fc.weight[:, 0] * whole + 1)
        z = torch.addcmul(z, self._windows(y), self.psi(y))
        x = torch.addcmul(self.drop_path_out(z), x, level.mask.to(x.dtype))
        output: Tensor = x + self.drop_path_mlp(self.mlp(self.gn(x, level)))
        return output

    def _windows(self, y: Tensor) -> Tensor:
        """(B, D, T) the narrow and the wide convolution of `y` added up, which is one with the sum of their filters."""
        small, large = sorted((self.convw.weight, self.convkw.weight), key=lambda weight: weight.shape[-1])
        spare = (large.shape[-1] - small.shape[-1]) // 2
        weight, bias = large + F.pad(small, (spare, spare)), self.convw.bias + self.convkw.bias
        return F.conv1d(y, weight, bias, padding=weight.shape[-1] // 2, groups=y.shape[1])
