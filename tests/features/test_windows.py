"""The arithmetic of windows, against its definition written out."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import BadValue, UnknownName
from jostle.features.windows import WindowGrid, mean_rate, resample_frames

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


faults = st.sets(st.sampled_from(["skipped-window", "early-row"])).map(lambda some: tuple(sorted(some)))


def rewritten(struck: np.ndarray, grid: WindowGrid) -> dict[int, int]:
    """The window that ends up in each rewritten row, by the released program's loops and its formula or a right one."""
    rows = grid.count(len(struck))
    early = "early-row" in grid.reproduce_bugs
    chosen: set[int] = set()
    for frame in np.flatnonzero(struck).tolist():
        if "skipped-window" in grid.reproduce_bugs:
            first = max((frame - 1 - grid.window) // grid.stride + 1, 0)
            last = max((frame - 1) // grid.stride, 0)
            chosen.update(range(first, last + 1))
        else:
            chosen.update(i for i in range(frame + 1) if i * grid.stride <= frame < i * grid.stride + grid.window)
    made: dict[int, int] = {}
    for window in sorted(chosen):
        if window < rows + early:
            made[list(range(rows))[window - 1] if early else window] = window
    return made


@given(sizes, st.data(), st.sampled_from(["all", "released", "released-json"]), faults)
def test_rows_are_rewritten_as_released_where_that_is_asked_for(
    facts: tuple[int, int, int], data: st.DataObject, rule, named
) -> None:
    frames, window, stride = facts
    struck = np.array(data.draw(st.lists(st.booleans(), min_size=frames, max_size=frames)))
    grid = WindowGrid(window, stride, rule, named)
    windows, rows = grid.patched(struck)
    assert dict(zip(rows.tolist(), windows.tolist(), strict=True)) == rewritten(struck, grid)
    if not named:
        assert windows.tolist() == rows.tolist() == grid.touched(struck).tolist()


@pytest.mark.parametrize(
    ("frame", "right", "released"),
    [
        (19, [1, 2, 3, 4], [1, 2, 3, 4]),
        (20, [2, 3, 4, 5], [1, 2, 3, 4]),  # window 5 begins with it and stays clean; window 1 has nothing of it
        (21, [2, 3, 4, 5], [2, 3, 4, 5]),
        (0, [0], [0]),
        (4, [0, 1], [0]),
    ],
)
def test_a_window_that_begins_with_the_struck_frame_is_skipped(
    frame: int, right: list[int], released: list[int]
) -> None:
    struck = np.arange(60) == frame
    assert WindowGrid(16, 4, "released").patched(struck)[0].tolist() == right
    assert WindowGrid(16, 4, "released", ("skipped-window",)).patched(struck)[0].tolist() == released


def test_a_run_of_struck_frames_loses_its_last_window_only() -> None:
    """Frames 361-364 of the fact sheet's kind: windows (first - 17) // 4 + 1 to (last - 1) // 4."""
    struck = np.zeros(600, np.bool_)
    struck[361:365] = True
    windows, _ = WindowGrid(16, 4, "released", ("skipped-window",)).patched(struck)
    assert windows.tolist() == list(range((361 - 17) // 4 + 1, (364 - 1) // 4 + 1)) == [87, 88, 89, 90]
    assert WindowGrid(16, 4, "released").patched(struck)[0].tolist() == [87, 88, 89, 90, 91]


def test_rows_go_one_early_and_the_first_goes_last() -> None:
    grid = WindowGrid(16, 4, "released", ("early-row",))  # of 60 frames 11 windows, of which 12 are full
    assert [part.tolist() for part in grid.patched(np.arange(60) == 21)] == [[2, 3, 4, 5], [1, 2, 3, 4]]
    assert [part.tolist() for part in grid.patched(np.arange(60) == 5)] == [[0, 1], [10, 0]]
    assert [part.tolist() for part in grid.patched(np.arange(60) == 59)] == [[11], [10]]


@pytest.mark.parametrize(("percent", "share"), [(1, 5.8), (5, 4.2), (10, 3.3)])
def test_the_share_of_windows_that_the_released_program_leaves_clean(percent: int, share: float) -> None:
    """On the test videos of THUMOS14, as the fact sheet counts it."""
    path = Path(__file__).parents[3] / "shared" / "data" / "annotations" / "thumos14.json"
    if not path.exists():
        pytest.skip("no thumos14.json beside the checkout")
    grid, with_fault = WindowGrid(16, 4, "released"), WindowGrid(16, 4, "released", ("skipped-window",))
    touched = left_clean = 0
    for video in json.loads(path.read_text())["database"].values():
        if video["subset"] != "Test":
            continue
        struck = np.zeros(round(video["duration"] * video["fps"]), np.bool_)
        for action in video["annotations"]:
            start, end = action["segment(frames)"]
            centre, half = start + (end - start) / 2, percent * (end - start) / 200
            struck[int(centre - half + 0.5) : int(centre + half + 0.5) + 1] = True
        seen = grid.touched(struck)
        touched += len(seen)
        left_clean += len(np.setdiff1d(seen, with_fault.patched(struck)[0]))
    assert round(100 * left_clean / touched, 1) == share


def test_times_are_the_middles() -> None:
    assert WindowGrid(16, 4).times(3, 30.0).tolist() == [8 / 30, 12 / 30, 16 / 30]


def test_what_is_no_grid_is_refused() -> None:
    with pytest.raises(BadValue, match="window and stride must be at least 1 frame, got 0 and 4"):
        WindowGrid(0, 4)
    with pytest.raises(UnknownName, match="did you mean released"):
        WindowGrid(16, 4, "relased")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="did you mean early-row"):
        WindowGrid(16, 4, "released", ("early-rows",))  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="a video without frames has no windows"):
        WindowGrid(16, 4).count(0)


@given(st.integers(1, 200), st.sampled_from([24, 25, 30, Fraction(30000, 1001)]), st.sampled_from([5.0, 15.0, 60.0]))
def test_a_retimed_video_shows_what_is_on_at_each_tick(frames: int, fps, rate: float) -> None:
    fps = Fraction(fps)
    pts = np.arange(frames) * fps.denominator / fps.numerator
    found = resample_frames(pts, fps, rate)
    ticks = [Fraction(i) / Fraction(rate) for i in range(len(found))]
    assert found.tolist() == [min(int(tick * fps), frames - 1) for tick in ticks]
    assert len(found) == max(int(frames / fps * Fraction(rate)), 1)
    assert resample_frames(pts, fps, None).tolist() == list(range(frames))


def test_the_rate_is_measured_where_frames_do_not_keep_to_it() -> None:
    even = np.arange(50) / 25
    assert mean_rate(even, Fraction(25)) == 25.0
    assert mean_rate(even[:1], Fraction(25)) == 25.0
    uneven = np.concatenate([even, 2 + np.arange(50) / 5])
    assert mean_rate(uneven, Fraction(25)) == pytest.approx(99 / uneven[-1])
