"""Feature pyramids of point detectors: residual branches, points, embedding, neck, and the towers levels share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.convolution import ChannelNorm, MaskedConv, SequenceGroupNorm
from jostle.models.detection.blocks.levels import Level, Row

if TYPE_CHECKING:
    from jostle.models.detection.config import PointConfig

KERNEL = 3  # of embedding and heads, in every published configuration


class ScaledDropPath(nn.Module):
    """Learned channel scale (LayerScale, initially 1e-4) and stochastic depth over the batch.

    The scale stays at test time. With a rate of 0 the originals leave the module out, parameters and all:
    `drop_path` does.
    """

    def __init__(self, channels: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.scale = nn.Parameter(torch.full((1, channels, 1), 1e-4))

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.scale
        if not self.training:
            return x
        keep = torch.empty(x.shape[0], 1, 1, dtype=x.dtype, device=x.device).bernoulli_(1 - self.rate)
        return x * (keep / (1 - self.rate))


def drop_path(channels: int, rate: float) -> nn.Module:
    """Return the module for a rate: with nothing to drop it has no parameters."""
    return ScaledDropPath(channels, rate) if rate > 0 else nn.Identity()


@dataclass(frozen=True)
class Points:
    """Points of all levels, concatenated."""

    sizes: tuple[int, ...]  # points of each level
    position: Tensor  # (N,) grid position: point i of a level with stride s sits at i s, without a half step
    stride: Tensor  # (N,) grid steps between the points of its level
    low: Tensor  # (N,) shortest distance to an action's far end that the level is responsible for, in grid steps
    high: Tensor  # (N,) longest one
    level: Tensor  # (N,) number of the level, from 0

    @classmethod
    def of(cls, sizes: Sequence[int], ranges: Sequence[tuple[float, float]], device: torch.device) -> Points:
        """Return the points of levels with strides 1, 2, 4, ..."""

        def each(values: Iterable[float]) -> Tensor:
            # Filled there: a number that is copied to a GPU waits for all that is under way on it.
            return torch.cat(
                [torch.full((size,), value, device=device) for value, size in zip(values, sizes, strict=True)]
            )

        steps = torch.cat([torch.arange(size, device=device) for size in sizes])
        level = each(range(len(sizes)))
        low, high = (each(side) for side in zip(*ranges, strict=True))
        stride = (2**level).float()
        return cls(tuple(sizes), steps * stride, stride, low, high, level)


class Embedding(nn.Module):
    """Base of the backbones: some times [convolution, norm, ReLU]; subclasses add levels.

    OpenTAD masks once more after the ReLU, where the originals leave ReLU(bias) in the padding.

    Args:
        table: length of the table of positions, 0 for none.
    """

    positions: Tensor

    def __init__(self, config: PointConfig, *, table: int = 0) -> None:
        super().__init__()
        widths = [config.input_dim] + [config.dim] * config.embedding_layers
        self.embd = nn.ModuleList(MaskedConv(a, config.dim, KERNEL, bias=False) for a in widths[:-1])
        self.embd_norm = nn.ModuleList(ChannelNorm(config.dim, config.eps) for _ in range(config.embedding_layers))
        self.clear = config.opentad
        self.register_buffer("positions", sinusoids(table, config.dim), persistent=False)

    def embed(self, features: Tensor, level: Level) -> Tensor:
        """Return (B, D, columns) of the finest level from features (B, C, T)."""
        x = features
        for conv, norm in zip(self.embd, self.embd_norm, strict=True):
            x = conv(x, level.mask[..., : x.shape[-1]])
            if x.shape[-1] != level.columns:  # the first time: what it would find in the padding is masked anyway
                x = F.pad(x, (0, level.columns - x.shape[-1]))
            x = norm(x, reuse=True)
            if self.clear:
                x = x.mul_(level.mask)
            x = x.relu_()
        if self.positions.shape[-1]:
            x = x + self._positions(level).to(x.dtype) * level.mask
        return x

    def _positions(self, level: Level) -> Tensor:
        table = self.positions
        if level.padded > table.shape[-1]:  # longer than any video in training: stretch what was learned
            table = F.interpolate(table, level.padded, mode="linear", align_corners=False)
        return table[..., : level.columns]


def sinusoids(length: int, dim: int) -> Tensor:
    """(1, dim, length) sines in even channels and cosines in odd ones, wavelengths up to 10000, over sqrt(dim)."""
    if torch.get_default_device().type == "meta":  # arithmetic there would import torch's compiler, for 1.6 s
        return torch.empty(1, dim, length)
    channel = torch.arange(dim, dtype=torch.float64)
    rate = 10000.0 ** (-2 * torch.div(channel, 2, rounding_mode="floor") / dim)
    angle = rate[:, None] * torch.arange(length, dtype=torch.float64)  # (dim, length)
    table = torch.where(channel[:, None] % 2 == 0, angle.sin(), angle.cos())
    return (table / math.sqrt(dim)).float()[None]


def halve(x: Tensor) -> Tensor:
    """Return (B, C, ceil(T / 2)) the greatest of three neighbours around every second column."""
    return F.max_pool1d(x, 3, 2, 1)


class Neck(nn.Module):
    """Identity pyramid with one norm per level, as in every published configuration."""

    def __init__(self, norms: Sequence[nn.Module]) -> None:
        super().__init__()
        self.fpn_norms = nn.ModuleList(norms)

    def forward(self, pyramid: Sequence[Tensor], levels: Sequence[Level]) -> list[Tensor]:
        outputs = []
        for x, level, norm in zip(pyramid, levels, self.fpn_norms, strict=True):
            outputs.append(norm(x, level) if isinstance(norm, SequenceGroupNorm) else norm(x))
        return outputs


class Tower(nn.Module):
    """Stack of two times [convolution, norm, ReLU].

    OpenTAD masks once more after the ReLU and leaves the last convolution unmasked; the originals do the reverse, so
    that ReLU(bias) stays in the padding between two layers.
    """

    def __init__(self, config: PointConfig) -> None:
        super().__init__()
        width = config.head_width
        self.head = nn.ModuleList(MaskedConv(a, width, KERNEL, bias=False) for a in (config.dim, width))
        self.norm = nn.ModuleList(ChannelNorm(width, config.eps) for _ in range(2))
        self.clear = config.opentad

    def hidden(self, x: Tensor, row: Row) -> Tensor:
        """Return (B, dim, S) after the layers; the gaps between levels are zero again."""
        mask = row.valid if self.clear else row.inside
        for conv, norm in zip(self.head, self.norm, strict=True):
            x = norm(conv(x, row.valid), reuse=True).mul_(mask).relu_()
        return x

    def last(self, conv: MaskedConv, x: Tensor, row: Row) -> Tensor:
        """Return (B, outputs, S) of the last convolution."""
        return conv(x, row.inside if self.clear else row.valid)  # type: ignore[no-any-return]


class ClassTower(Tower):
    """Tower that predicts class logits at every column.

    Args:
        prior: probability that the last bias starts with, so that training begins with few detections.
    """

    def __init__(self, config: PointConfig, prior: float) -> None:
        super().__init__(config)
        self.cls_head = MaskedConv(config.head_width, config.classes, KERNEL)
        if prior > 0:
            assert self.cls_head.conv.bias is not None
            nn.init.constant_(self.cls_head.conv.bias, -math.log((1 - prior) / prior))

    def forward(self, x: Tensor, row: Row) -> Tensor:
        return self.last(self.cls_head, self.hidden(x, row), row)  # (B, classes, S)


class LearnedScale(nn.Module):
    """Learned scalar, stored without dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))


class OffsetTower(Tower):
    """Tower that predicts non-negative values with a scale per level: distances, or TriDet's centre bins."""

    def __init__(self, config: PointConfig, outputs: int) -> None:
        super().__init__(config)
        self.scale = nn.ModuleList(LearnedScale() for _ in range(config.levels))
        self.offset_head = MaskedConv(config.head_width, outputs, KERNEL)

    def forward(self, x: Tensor, row: Row) -> Tensor:
        scale = row.spread(torch.stack([level.get_parameter("scale") for level in self.scale]))
        return F.relu(self.last(self.offset_head, self.hidden(x, row), row) * scale)  # (B, outputs, S)
