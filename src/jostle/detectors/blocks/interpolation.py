"""Weighted sums of what lies between the steps of a sequence, as one product with a matrix.

Every place between two steps is a mixture of them. The shares of all places that belong to one sum are added up in a
row as long as the sequence, so that the sums are a product of matrices, of which a processor makes short work: nothing
is gathered, and the gradient is two products more.
"""

from __future__ import annotations

import torch
from torch import Tensor


def mixtures(place: Tensor, weight: Tensor, steps: int) -> Tensor:
    """(..., steps) how much of every step is in the weighted sum of what is seen at places (..., P).

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
    made = shares.new_zeros(*weight.shape[:-1], steps + 2)
    # Place after place: then no two shares are added to a column at a time, in an order that a GPU leaves to chance.
    for column, share in zip(columns.unbind(-2), shares.unbind(-2), strict=True):
        made.scatter_add_(-1, column, share)
    return made[..., 1:-1]
