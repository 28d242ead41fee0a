"""From maps of a trunk to the levels of a pyramid: BasicTAD's two ways."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.normed_conv import BatchNormedConv, HalvingConv


class Halvings(nn.Module):
    """The maps as they are and halved in time again and again, each level averaged over its places."""

    def __init__(self, inputs: int, dim: int, levels: int) -> None:
        super().__init__()
        self.count = levels - 1
        for number in range(1, levels):
            # One block a layer, counted: that is how the public tensors are called.
            self.add_module(f"layer{number}", nn.Sequential(HalvingConv(inputs if number == 1 else dim, dim)))

    def forward(self, maps: Tensor) -> list[Tensor]:
        """(B, C, t) of each level."""
        made = [maps]
        for number in range(1, self.count + 1):
            made.append(self.get_submodule(f"layer{number}")(made[-1]))
        return [x.mean((-2, -1)) for x in made]


class TopDown(nn.Module):
    """Levels of one width, each with what the coarser ones know added to it, after Lin et al. (2017)."""

    def __init__(self, widths: list[int], dim: int) -> None:
        super().__init__()
        self.lateral_convs = nn.ModuleList(BatchNormedConv(width, dim, 1, relu=False) for width in widths)
        self.fpn_convs = nn.ModuleList(BatchNormedConv(dim, dim, 3, relu=False) for _ in widths)

    def forward(self, levels: list[Tensor]) -> list[Tensor]:
        """(B, dim, t) of each level."""
        made = [conv(x) for conv, x in zip(self.lateral_convs, levels, strict=True)]
        for level in range(len(made) - 1, 0, -1):
            made[level - 1] = made[level - 1] + F.interpolate(made[level], size=made[level - 1].shape[-1])
        return [conv(x) for conv, x in zip(self.fpn_convs, made, strict=True)]


def max_pooled(maps: Tensor, levels: int) -> list[Tensor]:
    """(B, C, t) of each level: the mean over places, and maxima of neighbours after it."""
    made = [maps.mean((-2, -1))]
    for _ in range(levels - 1):
        made.append(F.max_pool1d(made[-1], 3, 2, 1))
    return made
