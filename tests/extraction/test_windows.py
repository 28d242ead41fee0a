"""The arithmetic of windows, against its definition written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import BadValue, UnknownName
from jostle.extraction.windows import WindowGrid, mean_rate, retimed

sizes = st.tuples(st.integers(1, 90), st.integers(1, 20), st.integers(1, 20))


def seen_by(i: int, frames: int, window: int, stride: int) -> list[int]:
    return [min(i * stride + k, frames - 1) for k in range(window)]


@given(sizes)
def test_all_full_windows_are_there_and_no_other(facts: tuple[int, int, int]) -> None:
    frames, window, stride = facts
    full = sum(i * stride + window <= frames for i in range(frames + 1))
    assert WindowGrid(window, stride).count(frames) == max(full, 1)
    assert WindowGrid(window, stride, "released").count(frames) == max(full - 1, 1)


@given(sizes)
def test_a_window_sees_its_frames_and_repeats_the_last(facts: tuple[int, int, int]) -> None:
    frames, window, stride = facts
    grid = WindowGrid(window, stride)
    every = np.arange(grid.count(frames))
    expected = [seen_by(i, frames, window, stride) for i in range(len(every))]
    assert grid.frames_of(every, frames).tolist() == expected


@given(sizes, st.data(), st.sampled_from(["all", "released", "released-json"]))
def test_touched_windows_are_those_with_a_struck_frame(facts: tuple[int, int, int], data: st.DataObject, rule) -> None:
    frames, window, stride = facts
    struck = np.array(data.draw(st.lists(st.booleans(), min_size=frames, max_size=frames)))
    grid = WindowGrid(window, stride, rule)
    expected = [i for i in range(grid.count(frames)) if struck[seen_by(i, frames, window, stride)].any()]
    assert grid.touched(struck).tolist() == expected


def test_counts_of_the_released_table() -> None:
    """The largest f with 4 f + 17 <= N."""
    grid = WindowGrid(16, 4, "released-json")
    for frames in range(21, 400):
        assert grid.count(frames) == max(f for f in range(200) if 4 * f + 17 <= frames)


def test_times_are_the_middles() -> None:
    assert WindowGrid(16, 4).times(3, 30.0).tolist() == [8 / 30, 12 / 30, 16 / 30]


def test_what_is_no_grid_is_refused() -> None:
    with pytest.raises(BadValue, match="window and stride count frames from 1, got 0 and 4"):
        WindowGrid(0, 4)
    with pytest.raises(UnknownName, match="did you mean released"):
        WindowGrid(16, 4, "relased")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="a video without frames has no windows"):
        WindowGrid(16, 4).count(0)


@given(st.integers(1, 200), st.sampled_from([24, 25, 30, Fraction(30000, 1001)]), st.sampled_from([5.0, 15.0, 60.0]))
def test_a_retimed_video_shows_what_is_on_at_each_tick(frames: int, fps, rate: float) -> None:
    fps = Fraction(fps)
    pts = np.arange(frames) * fps.denominator / fps.numerator
    found = retimed(pts, fps, rate)
    ticks = [Fraction(i) / Fraction(rate) for i in range(len(found))]
    assert found.tolist() == [min(int(tick * fps), frames - 1) for tick in ticks]
    assert len(found) == max(int(frames / fps * Fraction(rate)), 1)
    assert retimed(pts, fps, None).tolist() == list(range(frames))


def test_the_rate_is_measured_where_frames_do_not_keep_to_it() -> None:
    even = np.arange(50) / 25
    assert mean_rate(even, Fraction(25)) == 25.0
    assert mean_rate(even[:1], Fraction(25)) == 25.0
    uneven = np.concatenate([even, 2 + np.arange(50) / 5])
    assert mean_rate(uneven, Fraction(25)) == pytest.approx(99 / uneven[-1])
