"""Lost rows: a straight line between the sound ones around them, and the nearest sound frame of each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.features.interpolation import interpolate_rows, nearest_undamaged

masks = st.lists(st.booleans(), min_size=1, max_size=40).map(np.array)


@given(masks.filter(lambda lost: not lost.all()), st.integers(0, 2**16))
def test_lost_rows_lie_on_a_line(lost: np.ndarray, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(len(lost), 3)).astype(np.float32)
    sound = np.flatnonzero(~lost)
    made = interpolate_rows(rows, lost)
    assert made.dtype == np.float32
    assert made[sound].tobytes() == rows[sound].tobytes()
    for column in range(3):
        line = np.interp(np.arange(len(lost)), sound, rows[sound, column].astype(np.float64))
        assert np.abs(made[:, column] - line).max() < 1e-5


@given(masks)
def test_the_nearest_sound_frame_is_the_nearest(struck: np.ndarray) -> None:
    found = nearest_undamaged(struck)
    if struck.all():
        assert found.tolist() == list(range(len(struck)))
        return
    sound = np.flatnonzero(~struck)
    for t, taken in enumerate(found.tolist()):
        assert taken == min(sound.tolist(), key=lambda other: (abs(other - t), other))
    assert (np.diff(found) >= 0).all()
