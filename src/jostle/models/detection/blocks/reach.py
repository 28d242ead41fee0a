"""Reach of layers in time, and I3D computed step by step, so that what a corruption did not reach can be kept.

A layer makes one step of its output from the few steps that it sees, as a 2D convolution whose channels are those of
all these steps. On a CPU that is faster too: the library has no fast kernel for the first convolution over 7x7x7 places
of three colours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.models.extractors.i3d import I3DMixed, I3DUnit, InceptionI3d, PaddedMaxPool, same_padding


class Reach(NamedTuple):
    """Steps that a layer sees for one step of its output; beyond the ends of a clip there are zeros.

    The layer keeps the edges: of T steps, a multiple of its stride, it makes T / stride.

    >>> Reach(7, 2).first(3)
    4
    """

    kernel: int = 3
    stride: int = 1

    def first(self, step: int) -> int:
        """Return the first step that the layer sees for this one, negative before the clip."""
        return step * self.stride - (self.kernel - self.stride) // 2


Apply = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class StepLayer:
    """Layer of I3D for single steps: what mixes steps, and what follows that treats them one by one."""

    reach: Reach
    mix: Apply  # (N, kernel, C, H, W) to (N, c, h, w)
    follow: tuple[Apply, ...] = ()  # (N, C, H, W) to (N, c, h, w)
    stage: str = ""  # whose output this is; empty inside a stage

    def __call__(self, near: Tensor) -> Tensor:
        """Return (N, c, h, w) of (N, kernel, C, H, W)."""
        x = self.mix(near)
        for apply in self.follow:
            x = apply(x)
        return x


def convolve(unit: I3DUnit, near: Tensor) -> Tensor:
    """Apply a convolution, norm and ReLU to (N, kernel, C, H, W) steps."""
    assert unit.bn is not None
    x = near.flatten(1, 2).contiguous(memory_format=torch.channels_last)
    padding = same_padding(x.shape[2:], unit.kernel[1:], unit.stride[1:])
    x = F.pad(x, padding) if any(padding) else x
    weight = unit.conv3d.weight.transpose(1, 2).flatten(1, 2).contiguous(memory_format=torch.channels_last)
    x, norm = F.conv2d(x, weight, stride=unit.stride[1:]), unit.bn
    x = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
    return F.relu(x, inplace=True)


def pool(unit: PaddedMaxPool, near: Tensor) -> Tensor:
    """Apply a max-pool to (N, kernel, C, H, W) steps; of fewer than it sees, the part that lies in space."""
    x = near.amax(1) if near.shape[1] > 1 else near[:, 0]
    padding = same_padding(x.shape[2:], unit.kernel[1:], unit.stride[1:])
    return F.max_pool2d(F.pad(x, padding) if any(padding) else x, unit.kernel[1:], unit.stride[1:])


def split_branches(block: I3DMixed, x: Tensor) -> Tensor:
    """Apply what a block does to each step by itself: the first convolution of each branch, and its pool in space."""
    x = x.contiguous(memory_format=torch.channels_last)
    units = [convolve(unit, x[:, None]) for unit in (block.b0, block.b1a, block.b2a)]
    return torch.cat([*units, pool(block.b3a, x[:, None])], 1)


def join_branches(block: I3DMixed, near: Tensor) -> Tensor:
    """Apply what a block does to three steps, after `split_branches`: (N, 3, C, H, W) to (N, c, H, W)."""
    widths = [unit.conv3d.out_channels for unit in (block.b0, block.b1a, block.b2a)]
    alone, first, second, maxima = torch.split(near, [*widths, near.shape[2] - sum(widths)], 2)
    last = convolve(block.b3b, maxima.amax(1, keepdim=True))
    return torch.cat([alone[:, 1], convolve(block.b1b, first), convolve(block.b2b, second), last], 1)


def step_layers(model: InceptionI3d) -> list[StepLayer]:
    """Return the layers of I3D up to its last stage, as few as keep apart what mixes steps."""
    layers: list[StepLayer] = []
    for name in model.stages:
        stage = model.get_submodule(name)
        if isinstance(stage, I3DMixed):
            last = layers.pop()
            layers.append(replace(last, follow=(*last.follow, partial(split_branches, stage)), stage=""))
            layers.append(StepLayer(Reach(3), partial(join_branches, stage), stage=name))
            continue
        assert isinstance(stage, I3DUnit | PaddedMaxPool)
        apply = partial(convolve, stage) if isinstance(stage, I3DUnit) else partial(pool, stage)
        if stage.kernel[0] > 1:
            layers.append(StepLayer(Reach(stage.kernel[0], stage.stride[0]), apply, stage=name))
        else:
            last = layers.pop()
            layers.append(replace(last, follow=(*last.follow, partial(one_by_one, apply)), stage=name))
    return layers


def one_by_one(apply: Apply, x: Tensor) -> Tensor:
    """Apply what sees one step to (N, C, H, W)."""
    return apply(x[:, None])
