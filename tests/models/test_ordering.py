"""Of equal values the one with the lowest index comes first, whatever a device's own order is."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jostle.models.ordering import highest, lowest


@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_equals_come_in_the_order_of_their_indices(count: int) -> None:
    values = torch.randint(-5, 6, (3, 4, 1000), generator=torch.Generator().manual_seed(0)).float() / 4
    assert torch.equal(lowest(values, count), values.argsort(dim=-1, stable=True)[..., :count])
    assert torch.equal(highest(values, count), values.argsort(dim=-1, stable=True, descending=True)[..., :count])


def test_extreme_values_and_both_zeros_are_in_order() -> None:
    values = torch.tensor([0.0, -np.inf, 3e38, -0.0, 1e-45, -1e-45, np.inf, -3e38, 0.0])
    assert lowest(values, 9).tolist() == [1, 7, 5, 0, 3, 8, 4, 2, 6]
    assert highest(values, 9).tolist() == [6, 2, 4, 0, 3, 8, 5, 7, 1]


def test_what_is_not_a_number_is_no_lowest_value() -> None:
    assert lowest(torch.tensor([np.nan, 1.0, np.inf]), 2).tolist() == [1, 2]
