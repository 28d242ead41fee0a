r"""Divergences of predictions for clean and corrupted input (Zeng et al., 2024), summed over numbers from 0 to 1.

$$ js: \sum \tfrac12 [m (\ln m - \ln p) + m (\ln m - \ln q)], m = (p + q) / 2; \quad
   kl: |\sum p (\ln p - \ln q)|; \quad mse: mean (p - q)^2 $$
"""

from __future__ import annotations

from torch import Tensor

from jostle.training.loss import divergence


@divergence("js")
def js(p: Tensor, q: Tensor, epsilon: float) -> Tensor:
    """Jensen-Shannon divergence, as in the paper.

    >>> import torch
    >>> round(js(torch.tensor([0.2]), torch.tensor([0.5]), 1e-6).item(), 6)
    0.035515
    """
    p, q = p.clamp(min=epsilon), q.clamp(min=epsilon)
    middle = (p + q) / 2
    return (0.5 * middle * (2 * middle.log() - p.log() - q.log())).sum()


@divergence("kl")
def kl(p: Tensor, q: Tensor, epsilon: float) -> Tensor:
    """Absolute Kullback-Leibler divergence, an alternative of the paper."""
    p, q = p.clamp(min=epsilon), q.clamp(min=epsilon)
    return (p * (p.log() - q.log())).sum().abs()


@divergence("mse", is_mean=True)
def mse(p: Tensor, q: Tensor, epsilon: float) -> Tensor:
    """Mean squared difference, an alternative of the paper."""
    return (p - q).square().mean() if p.numel() else (p - q).sum()
