"""Clip: frames with times, validated on creation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from jostle import Clip
from jostle.core.types.clip import check_rate
from jostle.errors import BadValue


def frames(n: int = 4) -> np.ndarray:
    return np.zeros((n, 6, 8, 3), np.uint8)


def test_frames_are_read_only_and_the_input_stays_writeable() -> None:
    array = frames()
    clip = Clip.at_rate(array, 25)
    with pytest.raises(ValueError, match="read-only"):
        clip.frames[0] = 1
    array[0] = 1
    assert array.flags.writeable


def test_a_slice_keeps_times() -> None:
    clip = Clip.at_rate(frames(10), 25)[4:6]
    assert clip.pts.tolist() == [0.16, 0.2]
    assert len(clip) == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((4, 6, 8), np.uint8), r"shape \(T, H, W, 3\), got \(4, 6, 8\)"),
        (np.zeros((4, 6, 8, 4), np.uint8), r"got \(4, 6, 8, 4\)"),
        (np.zeros((4, 6, 8, 3), np.float32), "must be uint8 in 0..255, got float32"),
        (np.zeros((4, 0, 8, 3), np.uint8), "must have a height and a width"),
        ([[1]], "must be a NumPy array"),
    ],
)
def test_invalid_frames_are_refused(bad: object, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        Clip.at_rate(bad, 25)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [[0, 1, 1, 2], [0, 2, 1, 3], [0, 1, np.nan, 3]])
def test_times_must_increase(times: list[float]) -> None:
    with pytest.raises(BadValue, match="finite and strictly increasing"):
        Clip(frames(), np.array(times, float), Fraction(25))


def test_each_frame_needs_a_timestamp() -> None:
    with pytest.raises(BadValue, match="4 frames needs 4 timestamps"):
        Clip(frames(), np.arange(3.0), Fraction(25))


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        (29.97, Fraction(30000, 1001)),
        (23.976, Fraction(24000, 1001)),
        (59.94, Fraction(60000, 1001)),
        (30.0, Fraction(30)),
        (25, Fraction(25)),
        ("30000/1001", Fraction(30000, 1001)),
        (12.5, Fraction(25, 2)),
        (29.5, Fraction(59, 2)),
    ],
)
def test_rates_are_fractions(value: float | str, rate: Fraction) -> None:
    assert check_rate(value) == rate


@pytest.mark.parametrize("bad", [0, -1, "fast", float("nan"), float("inf"), None])
def test_bad_rates_are_refused(bad: object) -> None:
    with pytest.raises(BadValue, match="fps must be a positive number"):
        check_rate(bad)


def test_other_frames_keep_the_times() -> None:
    clip = Clip.at_rate(frames(), 25)
    other = clip.with_frames(frames() + 7)
    assert other.pts is clip.pts
    assert other.frames.min() == 7
    with pytest.raises(ValueError, match="read-only"):
        other.frames[0] = 1
    with pytest.raises(BadValue, match=r"must stay \(4, 6, 8, 3\) uint8"):
        clip.with_frames(frames(3))


def test_repr_shows_shape_and_times() -> None:
    assert repr(Clip.at_rate(frames(), 25)) == "Clip(4 frames of 8x6, 0.000-0.120 s, 25.000 fps)"


def test_an_integer_index_is_refused() -> None:
    with pytest.raises(BadValue, match="cut with a slice"):
        Clip.at_rate(frames(), 25)[1]  # type: ignore[index]
