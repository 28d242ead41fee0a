"""Attention among neighbours in time, with convolutional projections (ActionFormer's building block).

Every query sees the keys at most `window // 2` steps away. Queries are taken in blocks: a block of 32 meets the 32 + 18
keys around it in one small product, so nothing but the overlap of neighbouring blocks is copied, and the scores outside
the band are the only ones computed in vain.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.convolution import ChannelNorm, MaskedConv, pointwise
from jostle.models.detection.blocks.levels import Level

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
