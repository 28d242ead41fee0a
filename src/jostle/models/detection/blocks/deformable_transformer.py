"""Deformable transformer over time; sampling between steps is one product with a matrix.

Every place between two steps is a mixture of them. The shares of all places that belong to one sum are added up in a
row as long as the sequence, so that the sums are a product of matrices, of which a processor makes short work: nothing
is gathered, and the gradient is two products more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def mixtures(place: Tensor, weight: Tensor, steps: int) -> Tensor:
    """Return (..., steps) how much of every step is in the weighted sum of what is seen at places (..., P).

    Outside of the sequence nothing is seen.

    Args:
        place: in steps; between two of them their linear mixture is seen.
        weight: (..., P) of each place.

    >>> mixtures(torch.tensor([0.25, 2.5]), torch.tensor([1.0, 2.0]), 3).tolist()
    [0.75, 0.25, 1.0]
    """
    before = place.detach().floor()
    later = place - before
    # A column in front and one behind take what is seen outside. What is no number has no place, and spoils its sum.
    columns = torch.stack([before, before + 1], -1).nan_to_num(0.0).clamp(-1, steps).long() + 1
    shares = torch.stack([weight * (1 - later), weight * later], -1)
    matrix = shares.new_zeros(*weight.shape[:-1], steps + 2)
    # Place after place: then no two shares are added to a column at a time, in an order that a GPU leaves to chance.
    for column, share in zip(columns.unbind(-2), shares.unbind(-2), strict=True):
        matrix.scatter_add_(-1, column, share)
    return matrix[..., 1:-1]


class DetectorMlp(nn.Module):
    """Three linear layers with ReLU in between, named `layers`."""

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, out)])

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (..., out)."""
        first, second, last = self.layers
        output: Tensor = last(F.relu(second(F.relu(first(x)))))
        return output


class DeformableAttention(nn.Module):
    """Attention that samples `points` positions around a reference per head."""

    def __init__(self, dim: int, heads: int, points: int) -> None:
        super().__init__()
        self.heads, self.points = heads, points
        self.sampling_offsets = nn.Linear(dim, heads * points)
        self.attention_weights = nn.Linear(dim, heads * points)
        self.value_proj = nn.Linear(dim, dim)
        self.output_proj = nn.Linear(dim, dim)
        self.start()

    def start(self) -> None:
        """Initialise the offsets: heads sample ahead, here, back and here, one step further per point."""
        ways = (4 * math.pi / self.heads * torch.arange(self.heads)).cos()
        with torch.no_grad():
            self.sampling_offsets.bias.copy_((ways[:, None] * torch.arange(1, self.points + 1)).flatten())
        for linear in (self.sampling_offsets, self.attention_weights):
            nn.init.zeros_(linear.weight)
        for linear in (self.value_proj, self.output_proj):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        nn.init.zeros_(self.attention_weights.bias)

    def places(self, query: Tensor, reference: Tensor, steps: int) -> Tensor:
        """Return (B, heads, Q, points) where a query looks, in steps.

        Args:
            query: (B, Q, D).
            reference: (B, Q, 1) moments, or (B, Q, 2) centres and widths; shares of the sequence.
        """
        offsets = self._by_head(self.sampling_offsets(query))  # (B, Q, heads, points)
        centre = reference[..., :1, None] * steps - 0.5  # (B, Q, 1, 1); the middle of the first step is place 0
        if reference.shape[-1] == 1:
            return (centre + offsets).transpose(1, 2)
        return (centre + offsets / self.points * (reference[..., 1:, None] * (0.5 * steps))).transpose(1, 2)

    def forward(self, query: Tensor, reference: Tensor, source: Tensor, padded: Tensor | None = None) -> Tensor:
        """Return a tensor of shape (B, Q, D).

        Args:
            source: (B, T, D) sequence to attend to.
            padded: (B, T) steps of it that hold nothing; None if all hold something.
        """
        value = self.value_proj(source)
        if padded is not None:
            value = value.masked_fill(padded[..., None], 0.0)
        value = self._by_head(value).transpose(1, 2)  # (B, heads, T, d)
        weight = self._by_head(self.attention_weights(query)).softmax(-1)
        mixture = mixtures(self.places(query, reference, source.shape[1]), weight.transpose(1, 2), source.shape[1])
        mixed = mixture @ value  # (B, heads, Q, d)
        output: Tensor = self.output_proj(mixed.transpose(1, 2).flatten(2))
        return output

    def _by_head(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, -1, (self.heads, -1))


SLIGHT = 1e-5  # least share that a logit is taken of
TINY = 1e-6  # added to the number of steps
SLOWEST = 10000.0  # ratio of the fastest and the slowest wave of positions


def positions(valid: Tensor, dim: int) -> Tensor:
    """Return (B, T, dim) waves along the valid steps (B, T), counted from 1, sines and cosines by turns."""
    count = valid.cumsum(1)
    angle = 2 * math.pi * count / (count[:, -1:] + TINY)
    pair = torch.arange(dim, device=valid.device, dtype=valid.dtype).div(2, rounding_mode="floor")
    angle = angle[..., None] / SLOWEST ** (2 * pair / dim)
    return torch.stack([angle[..., 0::2].sin(), angle[..., 1::2].cos()], -1).flatten(-2)


def logit(share: Tensor) -> Tensor:
    """Return the inverse sigmoid of values clamped to (0, 1)."""
    share = share.clamp(0, 1)
    return share.clamp(min=SLIGHT).log() - (1 - share).clamp(min=SLIGHT).log()


class FeedForward(nn.Module):
    """Base of layers with two linear maps and dropout; parameters belong to the subclass."""

    def __init__(self, dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def thought(self, x: Tensor) -> Tensor:
        """Return the feed-forward update of (B, N, D)."""
        output: Tensor = self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x)))))
        return output


class EncoderLayer(FeedForward):
    """Encoder layer: deformable self-attention over the sequence."""

    def __init__(self, dim: int, heads: int, points: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(dim, mlp_dim, dropout)
        self.self_attn = DeformableAttention(dim, heads, points)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, position: Tensor, reference: Tensor, padded: Tensor | None) -> Tensor:
        """Return a tensor of shape (B, T, D)."""
        x = self.norm1(x + self.dropout(self.self_attn(x + position, reference, x, padded)))
        output: Tensor = self.norm2(x + self.thought(x))
        return output


class DecoderLayer(FeedForward):
    """Decoder layer: self-attention over queries, then deformable attention over the sequence."""

    def __init__(self, dim: int, heads: int, points: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(dim, mlp_dim, dropout)
        self.cross_attn = DeformableAttention(dim, heads, points)
        self.norm1 = nn.LayerNorm(dim)
        self.self_attn = nn.MultiheadAttention(dim, heads, dropout, batch_first=True)
        self.norm2, self.norm3 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, position: Tensor, reference: Tensor, memory: Tensor, padded: Tensor | None) -> Tensor:
        """Return a tensor of shape (B, Q, D)."""
        query = x + position
        x = self.norm2(x + self.dropout(self.self_attn(query, query, x, need_weights=False)[0]))
        x = self.norm1(x + self.dropout(self.cross_attn(x + position, reference, memory, padded)))
        output: Tensor = self.norm3(x + self.thought(x))
        return output


class Layers(nn.Module):
    """Sequence of layers, named `layers`."""

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class DeformableTransformer(nn.Module):
    """Deformable transformer encoder and decoder.

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
        """Return (B, T, D) the memory, from features (B, T, D)."""
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
        """Return the queries (B, layers, Q, D) and segments (B, layers, Q, 2) after each layer.

        Args:
            queries: (Q, 2 D) position and content of each.
            moves: for each layer, from what a query says to how its segment moves.
        """
        position, x = (part.expand(len(memory), -1, -1) for part in queries.chunk(2, -1))
        reference = self.reference_points(position).sigmoid()
        # Segments are shares of what is valid, places are shares of the whole.
        share = 1.0 if padded is None else (~padded).to(reference.dtype).mean(1)[:, None, None]
        outputs, segments = [], []
        for layer, move in zip(self.decoder.layers, moves, strict=True):
            x = layer(x, position, reference * share, memory, padded)
            before = logit(reference)
            if before.shape[-1] == 1:  # a query starts as a moment; the first layer says how wide
                before = F.pad(before, (0, 1))
            outputs.append(x)
            segments.append((before + move(x)).sigmoid())
            reference = segments[-1].detach()
        return torch.stack(outputs, 1), torch.stack(segments, 1)
