"""Emulated fused multiply-add: rounded once, as by the compiled kernels and a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from helpers.triton_programs import multiplied_and_added
from jostle.core.kernels import kernel, multiply_add

FLOATS = st.floats(-4, 4, width=32)


@kernel
def fused(a, b, c):
    return multiply_add(a, b, c)


def on_tensors(*numbers: float) -> float:
    return float(multiplied_and_added(*(torch.tensor([number], dtype=torch.float32) for number in numbers)))


def on_kernels(*numbers: float) -> float:
    return float(fused(*(np.float32(number) for number in numbers)))


@given(FLOATS, FLOATS, FLOATS)
def test_rounded_once(a: float, b: float, c: float) -> None:
    assert on_tensors(a, b, c) == on_kernels(a, b, c)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("hair", [2.0**-23, -(2.0**-23)])
def test_ties_are_decided_beyond_double_precision(hair: float, sign: int) -> None:
    """Values slightly off the midpoint between two floats, which double precision rounds to the midpoint."""
    a, b, c = 1 + 2.0**-23, sign * 2.0**-24 * (1 - 2.0**-23 if hair < 0 else 1 + hair), sign * (1 + 2.0**-23)
    if hair < 0:
        assert np.float32(np.float64(a) * np.float64(b) + np.float64(c)) != np.float32(on_kernels(a, b, c))
    assert on_tensors(a, b, c) == on_kernels(a, b, c)
