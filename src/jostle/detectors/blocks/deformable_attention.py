"""Attention over time that looks at a few places of its own choice.

After Zhu et al.: "Deformable DETR", ICLR 2021, and Liu et al.: "End-to-End Temporal Action Detection with Transformer",
IEEE Transactions on Image Processing 2022. Tensors are named as there.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from jostle.detectors.blocks.interpolation import mixtures


class DeformableAttention(nn.Module):
    """Each head mixes what it sees at `points` places around a reference, by weights that the query chooses too."""

    def __init__(self, dim: int, heads: int, points: int) -> None:
        super().__init__()
        self.heads, self.points = heads, points
        self.sampling_offsets = nn.Linear(dim, heads * points)
        self.attention_weights = nn.Linear(dim, heads * points)
        self.value_proj = nn.Linear(dim, dim)
        self.output_proj = nn.Linear(dim, dim)
        self.start()

    def start(self) -> None:
        """As before any training: heads look ahead, here, back and here, each point a step further."""
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
        """(B, heads, Q, points) where a query looks, in steps.

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
        """(B, Q, D).

        Args:
            source: (B, T, D) what is looked at.
            padded: (B, T) steps of it that hold nothing; None if all hold something.
        """
        value = self.value_proj(source)
        if padded is not None:
            value = value.masked_fill(padded[..., None], 0.0)
        value = self._by_head(value).transpose(1, 2)  # (B, heads, T, d)
        weight = self._by_head(self.attention_weights(query)).softmax(-1)
        seen = mixtures(self.places(query, reference, source.shape[1]), weight.transpose(1, 2), source.shape[1])
        mixed = seen @ value  # (B, heads, Q, d)
        made: Tensor = self.output_proj(mixed.transpose(1, 2).flatten(2))
        return made

    def _by_head(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, -1, (self.heads, -1))
