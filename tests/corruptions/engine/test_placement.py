"""Placements: reference values of the THUMOS14-C programs, and properties."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle import Segments
from jostle.corruptions.engine.placement import Timeline, frame_positions, parse_placement
from jostle.errors import BadValue, UnknownName


def affected_frames(
    placement: str, frames: int, actions: list[tuple[float, float]] | None, **keys: object
) -> list[int]:
    timeline = Timeline(frames, None if actions is None else np.array(actions, float), **keys)  # type: ignore[arg-type]
    return np.flatnonzero(parse_placement(placement).mask(timeline)).tolist()


@pytest.mark.parametrize(
    ("action", "by_level"),
    [
        ((324, 402), (range(363, 364), range(361, 366), range(359, 368))),
        ((6, 33), (range(19, 21), range(19, 21), range(18, 22))),
        ((990, 1239), (range(1113, 1117), range(1108, 1122), range(1102, 1128))),
        ((30, 45), (range(37, 39), range(37, 39), range(37, 39))),
    ],
)
def test_thumos14_rule(action: tuple[float, float], by_level: tuple[range, ...]) -> None:
    for level, expected in zip((1, 5, 10), by_level, strict=True):
        assert affected_frames(f"centre:{level}%", 2000, [action]) == list(expected)


@pytest.mark.parametrize(
    ("seconds", "by_level"),
    [
        ((8.2050, 80.1876), (range(1314, 1336), range(1271, 1379), range(1217, 1433))),
        ((61.4204, 64.5601), (range(0), range(1887, 1891), range(1884, 1894))),
    ],
)
def test_activitynet_rule(seconds: tuple[float, float], by_level: tuple[range, ...]) -> None:
    action = (seconds[0] * 30, seconds[1] * 30)
    for level, expected in zip((1, 5, 10), by_level, strict=True):
        assert affected_frames(f"centre:{level}%@activitynet", 3000, [action]) == list(expected)


def test_frames_around_a_point() -> None:
    """n = 1 at 50 % is int(c); n = 5 is int(c - 2) to int(c + 2)."""
    assert affected_frames("at:50%x1", 100, [(10, 31)]) == [20]
    assert affected_frames("at:50%x5", 100, [(10, 31)]) == [18, 19, 20, 21, 22]
    assert affected_frames("at:10%x5", 100, [(10, 60)]) == [13, 14, 15, 16, 17]


def test_without_actions_the_whole_clip_counts_as_one() -> None:
    assert affected_frames("centre:10%", 100, None) == list(range(45, 56))
    assert affected_frames("centre:10%", 100, []) == []


def test_overlapping_actions_merge_and_ends_are_cut() -> None:
    assert affected_frames("centre:100%", 10, [(2, 5), (4, 7), (8, 40)]) == [2, 3, 4, 5, 6, 7, 8, 9]


def test_explicit_frame_numbers() -> None:
    assert affected_frames("frame:3", 10, None) == [3]
    assert affected_frames("frames:2-5", 10, None) == [2, 3, 4]
    with pytest.raises(BadValue, match="reaches frame 11, but the video has 10 frames"):
        affected_frames("frame:11", 10, None)


def test_random_frames_stay_inside_and_background_outside() -> None:
    inside = affected_frames("random:5", 100, [(20, 40)])
    outside = affected_frames("background:5", 100, [(20, 40)])
    assert len(inside) == len(outside) == 5
    assert all(20 <= t < 40 for t in inside)
    assert not any(20 <= t < 40 for t in outside)
    with pytest.raises(BadValue, match="needs the actions of the video"):
        affected_frames("background:1", 100, None)


def test_random_frames_depend_on_the_key_and_are_nested() -> None:
    assert affected_frames("random:8", 100, None, seed=1) == affected_frames("random:8", 100, None, seed=1)
    assert affected_frames("random:8", 100, None, seed=1) != affected_frames("random:8", 100, None, seed=2)
    assert affected_frames("random:8", 100, None, video_id="a") != affected_frames("random:8", 100, None, video_id="b")
    assert set(affected_frames("random:3", 100, None)) < set(affected_frames("random:8", 100, None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("center:5%", "did you mean centre"),
        ("centre:5%@thumos", "did you mean thumos14"),
        ("centre:5", "is not a share from 0% to 100%"),
        ("centre:130%", "is not a share from 0% to 100%"),
        ("frames:9-4", "is not a stretch"),
        ("frame:x", "not a whole number of at least 0"),
        ("random:0", "not a whole number of at least 1"),
        ("everywhere:2", "takes no argument"),
    ],
)
def test_invalid_placements_are_refused_with_a_hint(text: str, message: str) -> None:
    with pytest.raises((BadValue, UnknownName), match=message):
        parse_placement(text)


def test_seconds_become_frames_by_timestamps() -> None:
    rate = Fraction(25)
    even = np.arange(100) / 25
    assert frame_positions(np.array([1.0, 2.0]), even, rate).tolist() == [25.0, 50.0]
    slow_then_fast = np.concatenate([np.arange(50) / 10, 5 + np.arange(50) / 50])
    assert frame_positions(np.array([1.0, 5.5]), slow_then_fast, rate).tolist() == pytest.approx([10.0, 75.0])
    cut = Timeline.of(even[50:] + 0.0, rate, Segments.from_pairs([(2.0, 3.0)]))
    assert cut.actions is not None
    assert cut.actions.tolist() == [[0.0, 25.0]]


@given(
    st.floats(0, 500),
    st.floats(0.1, 400),
    st.sampled_from(["centre:1%", "centre:5%", "centre:10%", "at:30%x5", "at:50%x1"]),
)
def test_every_action_inside_the_clip_has_affected_frames(start: float, length: float, placement: str) -> None:
    """The thumos14 rule selects at least one frame of any action."""
    assert affected_frames(placement, 1000, [(start, start + length)])


@given(st.floats(0, 500), st.floats(1, 400))
def test_levels_are_nested(start: float, length: float) -> None:
    small, middle, large = (set(affected_frames(f"centre:{p}%", 1000, [(start, start + length)])) for p in (1, 5, 10))
    assert small <= middle <= large


def test_each_selects_frames_of_every_action() -> None:
    actions = [(10.0, 40.0), (100.0, 101.0), (200.0, 200.2), (990.0, 1200.0)]
    frames = affected_frames("each:2", 1000, actions, video_id="v")
    inside = [[f for f in frames if int(a) <= f < max(b, int(a) + 1)] for a, b in actions]
    assert [len(f) for f in inside] == [2, 1, 1, 2]
    assert sum(map(len, inside)) == len(frames)
    with_other_seed = affected_frames("each:2", 1000, actions, video_id="v", seed=1)
    assert with_other_seed != frames


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(0.1, 90)), min_size=1, max_size=8), st.integers(0, 10))
def test_a_pair_has_one_affected_frame(intervals: list[tuple[float, float]], seed: int) -> None:
    actions = sorted((start, start + length) for start, length in intervals)
    frames = affected_frames("pair", 1000, actions, seed=seed)
    cuts = [0, *(int(start) for start, _ in actions[1:]), 1000]
    for lo, hi in itertools.pairwise(cuts):
        assert sum(lo <= f < hi for f in frames) == (1 if lo < hi else 0)
    shuffled = list(reversed(actions))
    assert affected_frames("pair", 1000, shuffled, seed=seed) == frames


def test_released_pairs_end_with_their_action() -> None:
    actions = [(20.0, 40.5), (60.0, 90.0), (70.0, 80.0), (90.2, 90.6)]
    for seed in range(200):
        original = affected_frames("pair:released", 300, actions, seed=seed)
        videomae = affected_frames("pair:released-videomae", 300, actions, seed=seed)
        # The third action ends before the second, so its pair is left out; the fourth starts where the third ended.
        for selected, late in ((original, 0), (videomae, 1)):
            assert sum(1 <= f < 40 for f in selected) == 1
            assert max(selected) < 90
            assert len([f for f in selected if f >= 40]) in (1, 2)
            assert all(f >= 40 + late for f in selected[1:])
    firsts = {affected_frames("pair:released", 300, actions, seed=seed)[0] for seed in range(2000)}
    assert (min(firsts), max(firsts)) == (1, 39)


def test_pairs_of_a_clip_without_actions() -> None:
    assert len(affected_frames("pair", 50, None)) == 1
    assert not parse_placement("pair").mask(Timeline(50, np.zeros((0, 2)))).any()
    with pytest.raises(UnknownName, match="'release'"):
        parse_placement("pair:release")


def test_a_pair_may_have_several_consecutive_affected_frames() -> None:
    actions = [(20.0, 40.0), (60.0, 90.0)]
    for seed in range(50):
        frames = affected_frames("pair:x8", 200, actions, seed=seed)
        first, second = [f for f in frames if f < 60], [f for f in frames if f >= 60]
        assert first == list(range(first[0], first[0] + 8))
        assert second == list(range(second[0], second[0] + 8))
        assert len(affected_frames("pair:releasedx8", 200, actions, seed=seed)) == 16
    assert affected_frames("pair:x8", 5, [(1.0, 3.0)]) == [0, 1, 2, 3, 4]
    with pytest.raises(BadValue, match="pair:x8"):
        parse_placement("pair:x0")
