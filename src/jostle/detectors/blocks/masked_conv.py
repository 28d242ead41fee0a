"""A convolution over time whose result is zero in the padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
        made: Tensor = self.conv(x)  # (B, outputs, T / stride)
        return made.mul_(mask.to(made.dtype))


def pointwise(inputs: int, outputs: int) -> nn.Conv1d:
    """A convolution of kernel 1 whose bias starts at zero, as every bias of these networks does."""
    conv = nn.Conv1d(inputs, outputs, 1)
    assert conv.bias is not None
    torch.nn.init.zeros_(conv.bias)
    return conv
