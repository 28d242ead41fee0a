"""Trunks whose batch norms stay as they were learned."""

from __future__ import annotations

from typing import Self

from torch import nn

Norm = nn.BatchNorm2d | nn.BatchNorm3d


class FixedNorms(nn.Module):
    """A trunk that training can leave the norms of as they are: their statistics, and what they learned before.

    So does every trunk that calls `fix_norms` once it is built.
    """

    norms_fixed = False

    def fix_norms(self) -> None:
        """Take the norms out of what is learned."""
        self.norms_fixed = True
        for norm in self._norms():
            norm.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Training leaves fixed norms as they are."""
        super().train(mode)
        if self.norms_fixed:
            for norm in self._norms():
                norm.eval()
        return self

    def _norms(self) -> list[Norm]:
        return [module for module in self.modules() if isinstance(module, Norm)]
