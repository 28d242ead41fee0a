"""Repair of timestamps, tested without video files."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from jostle.io.video.timestamps import insert_lost, repair_timestamps, spans


def test_good_stamps_are_untouched() -> None:
    ticks, start, notes = repair_timestamps([0, 5, 6, 90], Fraction(10))
    assert (ticks.tolist(), start, notes) == ([0, 5, 6, 90], 0, [])


def test_a_nonzero_start_is_shifted_and_reported() -> None:
    ticks, start, notes = repair_timestamps([-20, -10, 5], Fraction(10))
    assert (ticks.tolist(), start) == ([0, 10, 25], -20)
    assert notes == ["the first timestamp is negative; times count from it"]
    assert repair_timestamps([7, 8], Fraction(1))[2] == ["the first timestamp is not zero; times count from it"]


def test_single_bad_stamps_follow_the_previous_one_by_a_step() -> None:
    stamps = [0, 10, None, 30, 30, *range(50, 400, 10)]
    ticks, _, notes = repair_timestamps(stamps, Fraction(10))
    assert ticks[:7].tolist() == [0, 10, 20, 30, 40, 50, 60]
    assert notes[0].startswith("1 timestamps are missing")
    assert notes[1].startswith("1 timestamps are out of order")


def test_one_early_frame_does_not_move_others() -> None:
    ticks, _, notes = repair_timestamps([0, 10, 20, 50, 30, 40, *range(60, 400, 10)], Fraction(10))
    assert ticks.tolist() == [0, 10, 20, 25, 30, 40, *range(60, 400, 10)]
    assert notes == ["1 timestamps are out of order; each is put between its neighbours"]
    coarse, _, _ = repair_timestamps([0, 1, 2, 5, 3, 4, *range(6, 40)], Fraction(1))
    assert coarse.tolist() == list(range(40)), "without room between ticks, as few frames as possible move"


def test_missing_stamps_at_the_start_count_back_from_the_first_known() -> None:
    ticks, start, _ = repair_timestamps([None, None, 25, *range(35, 400, 10)], Fraction(10))
    assert start == 5
    assert ticks[:4].tolist() == [0, 10, 20, 30]


def test_a_clock_that_jumps_back_continues_at_the_nominal_rate() -> None:
    ticks, _, _ = repair_timestamps([*range(0, 300, 10), *range(0, 100, 10)], Fraction(10))
    assert ticks.tolist() == list(range(0, 400, 10))


def test_mostly_bad_stamps_are_replaced_by_the_nominal_rate() -> None:
    ticks, _, notes = repair_timestamps([1, 4, 3, 6, 5, 8, 7, 10, 9], Fraction(1))
    assert ticks.tolist() == list(range(9))
    assert notes == [
        "timestamps cannot be trusted (0 missing, 4 out of order); frames are displayed at the nominal rate"
    ]


def test_absurd_stamps_stay_finite_and_increasing() -> None:
    for stamps in ([0, 2**62, 2**62 + 1], [-(2**63), 0, 2**63 - 1], [None] * 5):
        ticks, _, notes = repair_timestamps(stamps, Fraction(2**60))
        assert (np.diff(ticks) > 0).all()
        assert notes


def test_held_frames_repeat_the_last_good_one() -> None:
    ticks, indices = insert_lost(np.array([10, 20, 50]), [5, 30, 40, 60])
    assert ticks.tolist() == [10, 20, 30, 40, 50, 60]
    assert indices.tolist() == [0, 1, 1, 1, 2, 2]


def test_adjacent_spans_are_joined() -> None:
    assert spans([2.0, 0.0, 1.0], [3.0, 1.0, 1.5]) == [(0.0, 1.5), (2.0, 3.0)]
