"""Damaged rows: linear interpolation between undamaged rows, and the nearest undamaged frame."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.features.interpolation import interpolate_rows, nearest_undamaged

masks = st.lists(st.booleans(), min_size=1, max_size=40).map(np.array)


@given(masks.filter(lambda damaged: not damaged.all()), st.integers(0, 2**16))
def test_damaged_rows_are_interpolated_linearly(damaged: np.ndarray, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(len(damaged), 3)).astype(np.float32)
    intact = np.flatnonzero(~damaged)
    interpolated = interpolate_rows(rows, damaged)
    assert interpolated.dtype == np.float32
    assert interpolated[intact].tobytes() == rows[intact].tobytes()
    for column in range(3):
        line = np.interp(np.arange(len(damaged)), intact, rows[intact, column].astype(np.float64))
        assert np.abs(interpolated[:, column] - line).max() < 1e-5


@given(masks)
def test_nearest_undamaged_frame(damaged: np.ndarray) -> None:
    nearest = nearest_undamaged(damaged)
    if damaged.all():
        assert nearest.tolist() == list(range(len(damaged)))
        return
    intact = np.flatnonzero(~damaged)
    for t, index in enumerate(nearest.tolist()):
        assert index == min(intact.tolist(), key=lambda other: (abs(other - t), other))
    assert (np.diff(nearest) >= 0).all()
