"""A transformer over time whose attention looks at a few places: queries become segments, layer after layer.

Liu et al.: "End-to-End Temporal Action Detection with Transformer" (TadTR), IEEE Transactions on Image Processing 2022.
Tensors are named as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.deformable_attention import DeformableAttention

SLIGHT = 1e-5  # least share that a logit is taken of
TINY = 1e-6  # added to the number of steps
SLOWEST = 10000.0  # ratio of the fastest and the slowest wave of positions


def positions(valid: Tensor, dim: int) -> Tensor:
    """(B, T, dim) waves along the valid steps (B, T), counted from 1, sines and cosines by turns."""
    count = valid.cumsum(1)
    angle = 2 * math.pi * count / (count[:, -1:] + TINY)
    pair = torch.arange(dim, device=valid.device, dtype=valid.dtype).div(2, rounding_mode="floor")
    angle = angle[..., None] / SLOWEST ** (2 * pair / dim)
    return torch.stack([angle[..., 0::2].sin(), angle[..., 1::2].cos()], -1).flatten(-2)


def logit(share: Tensor) -> Tensor:
    """The inverse of the sigmoid, of shares brought to 0 to 1 and kept off the ends."""
    share = share.clamp(0, 1)
    return share.clamp(min=SLIGHT).log() - (1 - share).clamp(min=SLIGHT).log()


class FeedForward(nn.Module):
    """A layer's two linear maps and the dropout of all its parts; for layers to inherit, as the tensors are theirs."""

    def __init__(self, dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def thought(self, x: Tensor) -> Tensor:
        """What the two maps add to (B, N, D)."""
        made: Tensor = self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x)))))
        return made


class EncoderLayer(FeedForward):
    """Every step looks around itself."""

    def __init__(self, dim: int, heads: int, points: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(dim, mlp_dim, dropout)
        self.self_attn = DeformableAttention(dim, heads, points)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, position: Tensor, reference: Tensor, padded: Tensor | None) -> Tensor:
        """(B, T, D)."""
        x = self.norm1(x + self.dropout(self.self_attn(x + position, reference, x, padded)))
        made: Tensor = self.norm2(x + self.thought(x))
        return made


class DecoderLayer(FeedForward):
    """Every query looks at the others, then at the sequence around its reference."""

    def __init__(self, dim: int, heads: int, points: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(dim, mlp_dim, dropout)
        self.cross_attn = DeformableAttention(dim, heads, points)
        self.norm1 = nn.LayerNorm(dim)
        self.self_attn = nn.MultiheadAttention(dim, heads, dropout, batch_first=True)
        self.norm2, self.norm3 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, position: Tensor, reference: Tensor, memory: Tensor, padded: Tensor | None) -> Tensor:
        """(B, Q, D)."""
        asked = x + position
        x = self.norm2(x + self.dropout(self.self_attn(asked, asked, x, need_weights=False)[0]))
        x = self.norm1(x + self.dropout(self.cross_attn(x + position, reference, memory, padded)))
        made: Tensor = self.norm3(x + self.thought(x))
        return made


class Layers(nn.Module):
    """Layers one after another, called `layers`."""

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class DeformableTransformer(nn.Module):
    """Encoder and decoder.

    Args:
        depths: layers of the two.
    """

    def __init__(
        self, dim: int, *, heads: int, points: int, depths: tuple[int, int], mlp_dim: int, dropout: float
    ) -> None:
        super().__init__()
        sizes = (dim, heads, points, mlp_dim, dropout)
        self.level_embed = nn.Parameter(torch.randn(1, dim))
        self.encoder = Layers(EncoderLayer(*sizes) for _ in range(depths[0]))
        self.decoder = Layers(DecoderLayer(*sizes) for _ in range(depths[1]))
        self.reference_points = nn.Linear(dim, 1)
        for parameter in self.parameters():
            if parameter.dim() > 1 and parameter is not self.level_embed:
                nn.init.xavier_uniform_(parameter)
        nn.init.zeros_(self.reference_points.bias)
        for module in self.modules():
            if isinstance(module, DeformableAttention):
                module.start()

    def encode(self, x: Tensor, padded: Tensor | None) -> Tensor:
        """(B, T, D) the memory, from features (B, T, D)."""
        valid = torch.ones_like(x[..., 0]) if padded is None else (~padded).to(x.dtype)
        position = positions(valid, x.shape[-1]) + self.level_embed
        steps = x.shape[1]
        reference = ((torch.arange(steps, device=x.device, dtype=valid.dtype) + 0.5) / steps)[None, :, None]
        for layer in self.encoder.layers:
            x = layer(x, position, reference.expand(len(x), -1, -1), padded)
        return x

    def decode(
        self, memory: Tensor, padded: Tensor | None, queries: Tensor, moves: Iterable[Callable[[Tensor], Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """What queries say after each layer (B, layers, Q, D), and their segments (B, layers, Q, 2).

        Args:
            queries: (Q, 2 D) position and content of each.
            moves: for each layer, from what a query says to how its segment moves.
        """
        position, x = (part.expand(len(memory), -1, -1) for part in queries.chunk(2, -1))
        reference = self.reference_points(position).sigmoid()
        # Segments are shares of what is valid, places are shares of the whole.
        share = 1.0 if padded is None else (~padded).to(reference.dtype).mean(1)[:, None, None]
        said, segments = [], []
        for layer, move in zip(self.decoder.layers, moves, strict=True):
            x = layer(x, position, reference * share, memory, padded)
            before = logit(reference)
            if before.shape[-1] == 1:  # a query starts as a moment; the first layer says how wide
                before = F.pad(before, (0, 1))
            said.append(x)
            segments.append((before + move(x)).sigmoid())
            reference = segments[-1].detach()
        return torch.stack(said, 1), torch.stack(segments, 1)
