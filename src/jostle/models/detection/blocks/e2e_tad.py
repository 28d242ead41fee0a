"""Parts of E2E-TAD: a deformable transformer over time, RoI align, and one-to-one assignment with its losses.

Sampling between steps is one product with a matrix. Every place between two steps is a mixture of them. The shares of
all places that belong to one sum are added up in a row as long as the sequence, so that the sums are a product of
matrices, of which a processor makes short work: nothing is gathered, and the gradient is two products more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.assignment import Actions, focal


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

    def feed_forward(self, x: Tensor) -> Tensor:
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
        output: Tensor = self.norm2(x + self.feed_forward(x))
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
        output: Tensor = self.norm3(x + self.feed_forward(x))
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


def roi_align(x: Tensor, regions: Tensor, parts: int) -> Tensor:
    """Return (B, R, C, parts) the mean of what is seen in each part of the regions.

    A part is sampled at as many positions as it has begun steps. Place t is step t itself, not what lies before it, as
    E2E-TAD's kernel has it; behind the end of the sequence nothing is seen.

    Args:
        x: (B, T, C).
        regions: (B, R, 2) start and end in steps, from 0; shorter ones are taken to be a step long.

    >>> roi_align(torch.arange(8.0).view(1, 8, 1), torch.tensor([[[0.0, 4.0]]]), 2).tolist()
    [[[[1.0, 3.0]]]]
    """
    steps = x.shape[1]
    start, end = regions.unbind(-1)
    size = (end - start).clamp(min=1.0) / parts
    count = size.ceil()
    place = torch.arange(int(count.max()) if count.numel() else 0, device=x.device)
    within = place < count[..., None]
    inside = (place + 0.5) / count[..., None]
    part = torch.arange(parts, device=x.device)
    at = start[..., None, None] + (part[:, None] + inside[..., None, :]) * size[..., None, None]  # (B, R, parts, n)
    weights = (within[..., None, :] & (at <= steps)).to(at.dtype) / count[..., None, None]
    pooled = mixtures(at.clamp(max=steps - 1), weights, steps).flatten(1, 2) @ x  # (B, R * parts, C)
    return torch.unflatten(pooled, 1, (-1, parts)).transpose(2, 3)


COSTS = (6.0, 5.0, 2.0)  # of the class, of centre and width, of the overlap
ALPHA, LEAST = 0.25, 1e-8


def ends(segments: Tensor) -> Tensor:
    """Return (..., 2) start and end, from centre and width."""
    centre, width = segments.unbind(-1)
    return torch.stack([centre - 0.5 * width, centre + 0.5 * width], -1)


def centred(segments: Tensor) -> Tensor:
    """Return (..., 2) centre and width, from start and end."""
    start, end = segments.unbind(-1)
    return torch.stack([(start + end) / 2, end - start], -1)


def overlap(segments: Tensor, others: Tensor) -> Tensor:
    """Return (...) IoU of segments (..., 2), given by start and end; 0 where neither has a length."""
    inter = torch.minimum(segments[..., 1], others[..., 1]) - torch.maximum(segments[..., 0], others[..., 0])
    inter = inter.clamp(min=0)
    union = (segments[..., 1] - segments[..., 0]) + (others[..., 1] - others[..., 0]) - inter
    return inter / union.clamp(min=LEAST)


def costs(logits: Tensor, segments: Tensor, actions: Actions) -> Tensor:
    """Return (B, L, Q, M) of letting a query of a layer answer for an action.

    Args:
        logits: (B, L, Q, K).
        segments: (B, L, Q, 2) centre and width.
        actions: start and end, as shares of the clip.
    """
    likely = logits.sigmoid()
    right = ALPHA * (1 - likely).square() * -(likely + LEAST).log()
    wrong = (1 - ALPHA) * likely.square() * -(1 - likely + LEAST).log()
    label = actions.labels[:, None, None].expand(*logits.shape[:3], -1)
    goal = actions.segments[:, None, None]  # (B, 1, 1, M, 2)
    apart = (segments[..., None, :] - centred(goal)).abs().sum(-1)
    named, placed, covered = COSTS
    of_class = (right - wrong).gather(-1, label)
    return named * of_class + placed * apart - covered * overlap(ends(segments)[..., None, :], goal)


@torch.no_grad()
def assign_queries(logits: Tensor, segments: Tensor, actions: Actions) -> Tensor:
    """Return (B, L, Q) the action of its video that each query of each layer answers for, -1 for none."""
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]  # takes a while

    # One copy for all; a network that has lost its numbers says so by its loss, not here.
    every = np.nan_to_num(costs(logits, segments, actions).double().cpu().numpy(), nan=1e9, posinf=1e9, neginf=-1e9)
    number = np.full(every.shape[:3], -1, np.int64)
    for video, present in enumerate(actions.present.cpu().numpy()):
        (column,) = present.nonzero()
        for layer in range(every.shape[1]):
            query, action = linear_sum_assignment(every[video, layer][:, column])
            number[video, layer, query] = column[action]
    return torch.from_numpy(number).to(logits.device)


Counted = Callable[[Tensor], Tensor]  # a number of this batch, over all processes that share it


def layer_losses(
    logits: Tensor, segments: Tensor, number: Tensor, actions: Actions, counted: Counted
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (L,) of classes, of centres and widths, and of overlaps, each over the number of actions in the batch.

    Args:
        logits: (B, L, Q, K).
        segments: (B, L, Q, 2) centre and width.
        number: (B, L, Q) the action that a query answers for, -1 for none.
        actions: start and end, as shares of the clip.
    """
    share = counted(actions.present.sum()).clamp(min=1)
    positive, of = number >= 0, number.clamp(min=0).flatten(1)
    labels = actions.labels.gather(1, of).view_as(number)
    goal = actions.segments.gather(1, of[..., None].expand(-1, -1, 2)).view_as(segments)
    targets = F.one_hot(labels, logits.shape[-1]) * positive[..., None].to(logits.dtype)
    apart = (segments - centred(goal)).abs().sum(-1)
    missed = 1 - overlap(ends(segments), goal)
    each = (focal(logits, targets).sum(-1), torch.where(positive, apart, 0.0), torch.where(positive, missed, 0.0))
    classes, places, overlaps = (loss.sum((0, 2)) / share for loss in each)
    return classes, places, overlaps


def actionness_loss(
    actionness: Tensor, segments: Tensor, actions: Actions, counted: Counted, *, reproduce_bugs: bool
) -> Tensor:
    """Compute the mean absolute error of actionness and greatest overlap with an action.

    Args:
        actionness: (B, Q) probabilities.
        segments: (B, Q, 2) centre and width.
        reproduce_bugs: the greatest overlap with an action of any video of the batch, as the released program has it.
    """
    others, present = actions.segments, actions.present  # (B, M, 2), (B, M)
    if reproduce_bugs:
        others, present = others.flatten(0, 1)[None], present.flatten()[None]
    covered = overlap(ends(segments.detach())[:, :, None], others[:, None])  # (B, Q, M)
    goal = torch.where(present[:, None], covered, 0.0).amax(-1)
    return (actionness - goal).abs().sum() / counted(torch.tensor(goal.numel(), device=goal.device))
