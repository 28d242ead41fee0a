"""Pixelated frames equal a computation with integer sums."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.corruptions.digital import _cells, _pixelate


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (8, 1), (3, 5), (40, 31), (224, 340)])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.4, 0.25, 0.17, 0.05])  # cells of one to many pixels
def test_cells_are_means_across_then_down(size: tuple[int, int], share: float) -> None:
    frame = np.random.default_rng(2).integers(0, 256, (*size, 3), dtype=np.uint8)
    frame.setflags(write=False)
    small = [max(int(side * share), 1) for side in size]
    (top, bottom, row), (left, right, column) = (_cells(*pair) for pair in zip(size, small, strict=True))

    def mean(stretch: np.ndarray) -> np.ndarray:
        return (2 * stretch.astype(np.int64).sum(axis=0) + len(stretch)) // (2 * len(stretch))

    narrow = np.stack([mean(frame.swapaxes(0, 1)[a:b]) for a, b in zip(left, right, strict=True)], axis=1)
    cells = np.stack([mean(narrow[a:b]) for a, b in zip(top, bottom, strict=True)])

    guard = np.full(frame.size + 8, 7, np.uint8)
    out = guard[4:-4].reshape(frame.shape)
    _pixelate(frame, out, top, bottom, row, left, right, column)
    assert np.array_equal(out, cells[row][:, column])
    assert np.all(guard[:4] == 7)
    assert np.all(guard[-4:] == 7)
