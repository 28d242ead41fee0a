"""A convolution over time that looks where it chooses to, after Dai et al. (2017) and Zhu et al. (2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

KERNEL = 3


class DeformableConv(nn.Module):
    """Each of three places is moved by a learned distance, and what is seen there weighed by a learned share.

    Between two steps it sees their linear mixture, outside the clip nothing. Tensors are named as in BasicTAD.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, KERNEL, KERNEL)  # over places laid side by side
        self.p_conv = nn.Conv1d(inputs, KERNEL, KERNEL, padding=KERNEL // 2)
        self.m_conv = nn.Conv1d(inputs, KERNEL, KERNEL, padding=KERNEL // 2)
        nn.init.zeros_(self.p_conv.weight)
        nn.init.zeros_(self.m_conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(B, outputs, T)."""
        batch, _, steps = x.shape
        at = torch.arange(steps, device=x.device) + torch.arange(KERNEL, device=x.device)[:, None] - KERNEL // 2
        place = (
            (at + self.p_conv(x).float()).transpose(1, 2).reshape(batch, -1)
        )  # (B, T * 3), places of a step together
        share = self.m_conv(x).sigmoid().transpose(1, 2).reshape(batch, 1, -1)
        made: Tensor = self.conv(sampled(x, place) * share)
        return made


def sampled(x: Tensor, place: Tensor) -> Tensor:
    """(B, C, P) of (B, C, T) at places (B, P) in steps: the linear mixture of two neighbours, 0 outside.

    >>> sampled(torch.tensor([[[0.0, 10.0, 20.0]]]), torch.tensor([[0.5, 2.0, 2.5, -3.0]])).tolist()
    [[[5.0, 20.0, 10.0, 0.0]]]
    """
    steps = x.shape[-1]
    before = place.detach().floor()
    later = (place - before).to(x.dtype)
    made = torch.zeros((), dtype=x.dtype, device=x.device)
    for index, weight in ((before, 1 - later), (before + 1, later)):
        inside = (index >= 0) & (index < steps)
        row = index.clamp(0, steps - 1).long()[:, None].expand(-1, x.shape[1], -1)
        made = made + x.gather(-1, row) * (weight * inside)[:, None]
    return made
