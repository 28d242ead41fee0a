"""Window arithmetic against a direct implementation of its definition."""

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


def window_frames(i: int, frames: int, window: int, stride: int) -> list[int]:
    return [min(i * stride + k, frames - 1) for k in range(window)]


@given(sizes)
def test_the_count_includes_exactly_the_full_windows(facts: tuple[int, int, int]) -> None:
    frames, window, stride = facts
    full = sum(i * stride + window <= frames for i in range(frames + 1))
    assert WindowGrid(window, stride).count(frames) == max(full, 1)
    assert WindowGrid(window, stride, "released").count(frames) == max(full - 1, 1)


@given(sizes)
def test_a_window_repeats_the_last_frame_of_a_short_video(facts: tuple[int, int, int]) -> None:
    frames, window, stride = facts
    grid = WindowGrid(window, stride)
    indices = np.arange(grid.count(frames))
    expected = [window_frames(i, frames, window, stride) for i in range(len(indices))]
    assert grid.frames_of(indices, frames).tolist() == expected


def test_counts_of_the_released_table() -> None:
    """The largest f with 4 f + 17 <= N."""
    grid = WindowGrid(16, 4, "released-json")
    for frames in range(21, 400):
        assert grid.count(frames) == max(f for f in range(200) if 4 * f + 17 <= frames)


bug_sets = st.sets(st.sampled_from(["skipped-window", "early-row"])).map(lambda some: tuple(sorted(some)))


def rewritten_rows(corrupted: np.ndarray, grid: WindowGrid) -> dict[int, int]:
    """Return the window in each rewritten row, by the loops of the released program and its (or a correct) formula."""
    rows = grid.count(len(corrupted))
    early = "early-row" in grid.reproduce_bugs
    windows: set[int] = set()
    for frame in np.flatnonzero(corrupted).tolist():
        if "skipped-window" in grid.reproduce_bugs:
            first = max((frame - 1 - grid.window) // grid.stride + 1, 0)
            last = max((frame - 1) // grid.stride, 0)
            windows.update(range(first, last + 1))
        else:
            windows.update(i for i in range(frame + 1) if i * grid.stride <= frame < i * grid.stride + grid.window)
    window_of_row: dict[int, int] = {}
    for window in sorted(windows):
        if window < rows + early:
            window_of_row[list(range(rows))[window - 1] if early else window] = window
    return window_of_row


@given(sizes, st.data(), st.sampled_from(["all", "released", "released-json"]), bug_sets)
def test_reproduced_bugs_rewrite_rows_as_released(
    facts: tuple[int, int, int], data: st.DataObject, rule, named
) -> None:
    frames, window, stride = facts
    corrupted = np.array(data.draw(st.lists(st.booleans(), min_size=frames, max_size=frames)))
    grid = WindowGrid(window, stride, rule, named)
    windows, rows = grid.patched(corrupted)
    assert dict(zip(rows.tolist(), windows.tolist(), strict=True)) == rewritten_rows(corrupted, grid)
    if not named:
        assert windows.tolist() == rows.tolist() == grid.touched(corrupted).tolist()


@pytest.mark.parametrize(
    ("frame", "right", "released"),
    [
        (19, [1, 2, 3, 4], [1, 2, 3, 4]),
        (20, [2, 3, 4, 5], [1, 2, 3, 4]),  # window 5 begins with it but stays clean; window 1 does not contain it
        (21, [2, 3, 4, 5], [2, 3, 4, 5]),
        (0, [0], [0]),
        (4, [0, 1], [0]),
    ],
)
def test_a_window_that_begins_with_the_corrupted_frame_is_skipped(
    frame: int, right: list[int], released: list[int]
) -> None:
    corrupted = np.arange(60) == frame
    assert WindowGrid(16, 4, "released").patched(corrupted)[0].tolist() == right
    assert WindowGrid(16, 4, "released", ("skipped-window",)).patched(corrupted)[0].tolist() == released


def test_a_run_of_corrupted_frames_loses_its_last_window_only() -> None:
    """Frames 361-364, as in the fact sheet: windows (first - 17) // 4 + 1 to (last - 1) // 4."""
    corrupted = np.zeros(600, np.bool_)
    corrupted[361:365] = True
    windows, _ = WindowGrid(16, 4, "released", ("skipped-window",)).patched(corrupted)
    assert windows.tolist() == list(range((361 - 17) // 4 + 1, (364 - 1) // 4 + 1)) == [87, 88, 89, 90]
    assert WindowGrid(16, 4, "released").patched(corrupted)[0].tolist() == [87, 88, 89, 90, 91]


def test_early_rows_shift_by_one_and_the_first_becomes_the_last() -> None:
    grid = WindowGrid(16, 4, "released", ("early-row",))  # 60 frames have 12 full windows, of which 11 are written
    assert [part.tolist() for part in grid.patched(np.arange(60) == 21)] == [[2, 3, 4, 5], [1, 2, 3, 4]]
    assert [part.tolist() for part in grid.patched(np.arange(60) == 5)] == [[0, 1], [10, 0]]
    assert [part.tolist() for part in grid.patched(np.arange(60) == 59)] == [[11], [10]]


@pytest.mark.parametrize(("percent", "share"), [(1, 5.8), (5, 4.2), (10, 3.3)])
def test_share_of_windows_that_the_released_program_leaves_clean(percent: int, share: float) -> None:
    """Count on the test videos of THUMOS14, as the fact sheet does."""
    path = Path(__file__).parents[3] / "shared" / "data" / "annotations" / "thumos14.json"
    if not path.exists():
        pytest.skip("no thumos14.json beside the checkout")
    grid, with_fault = WindowGrid(16, 4, "released"), WindowGrid(16, 4, "released", ("skipped-window",))
    touched = left_clean = 0
    for video in json.loads(path.read_text())["database"].values():
        if video["subset"] != "Test":
            continue
        corrupted = np.zeros(round(video["duration"] * video["fps"]), np.bool_)
        for action in video["annotations"]:
            start, end = action["segment(frames)"]
            centre, half = start + (end - start) / 2, percent * (end - start) / 200
            corrupted[int(centre - half + 0.5) : int(centre + half + 0.5) + 1] = True
        windows = grid.touched(corrupted)
        touched += len(windows)
        left_clean += len(np.setdiff1d(windows, with_fault.patched(corrupted)[0]))
    assert round(100 * left_clean / touched, 1) == share


def test_window_times_are_their_centres() -> None:
    assert WindowGrid(16, 4).times(3, 30.0).tolist() == [8 / 30, 12 / 30, 16 / 30]


def test_invalid_grids_are_refused() -> None:
    with pytest.raises(BadValue, match="window and stride must be at least 1 frame, got 0 and 4"):
        WindowGrid(0, 4)
    with pytest.raises(UnknownName, match="did you mean released"):
        WindowGrid(16, 4, "relased")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="did you mean early-row"):
        WindowGrid(16, 4, "released", ("early-rows",))  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="a video without frames has no windows"):
        WindowGrid(16, 4).count(0)


@given(st.integers(1, 200), st.sampled_from([24, 25, 30, Fraction(30000, 1001)]), st.sampled_from([5.0, 15.0, 60.0]))
def test_a_resampled_video_has_the_current_frame_at_each_tick(frames: int, fps, rate: float) -> None:
    fps = Fraction(fps)
    pts = np.arange(frames) * fps.denominator / fps.numerator
    indices = resample_frames(pts, fps, rate)
    ticks = [Fraction(i) / Fraction(rate) for i in range(len(indices))]
    assert indices.tolist() == [min(int(tick * fps), frames - 1) for tick in ticks]
    assert len(indices) == max(int(frames / fps * Fraction(rate)), 1)
    assert resample_frames(pts, fps, None).tolist() == list(range(frames))


def test_the_mean_rate_is_measured_for_uneven_timestamps() -> None:
    even = np.arange(50) / 25
    assert mean_rate(even, Fraction(25)) == 25.0
    assert mean_rate(even[:1], Fraction(25)) == 25.0
    uneven = np.concatenate([even, 2 + np.arange(50) / 5])
    assert mean_rate(uneven, Fraction(25)) == pytest.approx(99 / uneven[-1])
