"""Blank frames: damage if the same scene continues behind them, content in cuts, fades and flashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jostle.core.types.clip import Frames
from jostle.mending.blank_frames import CONTEXT, MAX_GAP, find_blank, find_lost, find_lost_in_video
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors


def scene(frames: int, seed: int = 0, speed: int = 1, low: int = 20, high: int = 236) -> Frames:
    """Return moving squares of many brightnesses and colours."""
    coarse = np.random.default_rng(seed).integers(low, high, (8, 12, 3), np.uint8)
    ground = np.repeat(np.repeat(coarse, 8, axis=0), 8, axis=1)
    return np.stack([np.roll(ground, speed * t, axis=1) for t in range(frames)])


def find_lost_frames(descriptors: Descriptors) -> np.ndarray:
    return find_lost(find_blank(descriptors), lambda a, b: descriptors[a:b])


def lost_frames(frames: Frames) -> list[int]:
    return np.flatnonzero(find_lost_frames(describe_frames(frames))).tolist()


@pytest.mark.parametrize("grey", [0, 48, 128, 255])
@pytest.mark.parametrize("count", [1, 5, MAX_GAP])
def test_a_scene_that_disappears_and_returns_was_lost(grey: int, count: int) -> None:
    frames = scene(60 + MAX_GAP, speed=0)
    frames[20 : 20 + count] = grey
    assert lost_frames(frames) == list(range(20, 20 + count))


def test_frames_of_any_single_colour_are_lost_with_codec_noise_too() -> None:
    frames = scene(40)
    frames[20:23] = (200, 30, 90)
    frames[20:23, 20:28, 30:44:2] += 4
    assert lost_frames(frames) == [20, 21, 22]
    frames[20:23, :48] += 20  # two colours are content
    assert lost_frames(frames) == []
    frames[20:23] = 60
    frames[20:23, ::2] += 3  # and so is a pattern
    assert lost_frames(frames) == []


def test_a_moving_camera_keeps_the_same_brightness_and_colours() -> None:
    frames = scene(80, speed=3)
    frames[20:30] = 0
    assert lost_frames(frames) == list(range(20, 30))


def test_a_cut_to_black_before_another_scene_is_content() -> None:
    frames = np.concatenate([scene(30), np.zeros((12, 64, 96, 3), np.uint8), scene(30, seed=1)])
    assert lost_frames(frames) == []


@pytest.mark.parametrize("duration", [2, 5, 30])
@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_a_fade_is_content(duration: int, direction: str) -> None:
    frames, times = scene(120), np.arange(120)
    gain = np.clip((np.abs(times - 60) - 6) / duration, 0, 1)
    if direction != "both":
        gain[times > 60 if direction == "out" else times < 60] = 1
        gain[55:66] = 0
    assert lost_frames((frames * gain[:, None, None, None]).astype(np.uint8)) == []


def test_a_fading_flash_is_content_and_a_single_white_frame_is_not() -> None:
    frames = scene(60)
    light = np.array([255, 170, 110, 60, 30, 10])
    flash = frames.copy()
    flash[30:36] = 255 - (255 - flash[30:36]) * (255 - light)[:, None, None, None] / 255
    assert find_blank(describe_frames(flash))[30]
    assert lost_frames(flash) == []
    frames[30] = 255  # indistinguishable from a flash of one frame
    assert lost_frames(frames) == [30]


def test_open_ended_long_and_faint_gaps_are_not_reported() -> None:
    frames = scene(60 + MAX_GAP)
    for lo, hi in ((0, 10), (len(frames) - 10, len(frames)), (20, 21 + MAX_GAP)):
        damaged = frames.copy()
        damaged[lo:hi] = 0
        assert lost_frames(damaged) == []
    faint = scene(60, low=100, high=110)
    faint[20:25] = 0
    assert find_blank(describe_frames(faint)).tolist() == [20 <= t < 25 for t in range(60)]
    assert lost_frames(faint) == []


def test_a_video_of_blank_frames_only_is_lost() -> None:
    descriptors = describe_frames(np.zeros((5, 20, 20, 3), np.uint8))
    assert find_lost_in_video(find_blank(descriptors), lambda a, b: descriptors[a:b]).all()
    assert not find_lost_frames(descriptors).any()
    empty = np.zeros((0, CHANNELS, CELLS, CELLS), np.uint8)
    assert find_lost_frames(empty).shape == (0,)


def describe_scene_with_gaps(frames: int, seed: int) -> Descriptors:
    """Describe a scene with blank stretches of all lengths."""
    film, rng, position = scene(frames, seed=seed), np.random.default_rng(seed), 0
    while position < frames:
        position += int(rng.choice([0, 1, 2, 5, 30]))
        count = int(rng.choice([1, 2, 7, 40, MAX_GAP - 1, MAX_GAP, MAX_GAP + 1]))
        film[position : position + count] = rng.choice([0, 255])
        position += count + 1
    return describe_frames(film)


@pytest.mark.parametrize("seed", range(6))
def test_a_decision_depends_on_a_bounded_context(seed: int) -> None:
    descriptors = describe_scene_with_gaps(700, seed)
    expected, reach = find_lost_frames(descriptors), MAX_GAP + CONTEXT
    for index in range(0, 700, 13):
        first = max(index - reach, 0)
        assert find_lost_frames(descriptors[first : index + reach])[index - first] == expected[index]


def test_an_inspector_reports_lost_frames_streamed_and_at_once(inspector: Any) -> None:
    from jostle.mending.inspection import InspectedVideo

    frames = scene(500, speed=0)
    for lo, count in ((9, 3), (40, MAX_GAP), (150, MAX_GAP + 1), (260, 1), (262, 20), (400, 90), (495, 5)):
        frames[lo : lo + count] = 255
    expected, frames_read = np.flatnonzero(find_lost_frames(describe_frames(frames))), 0
    assert len(expected) == 3 + MAX_GAP + 1 + 20 + 90

    def camera() -> Iterator[np.ndarray]:
        nonlocal frames_read
        for frame in frames:
            frames_read += 1
            yield frame

    probabilities, delays = [], []
    for number, probability in enumerate(inspector.inspect(camera())):
        probabilities.append(probability)
        delays.append(frames_read - 1 - number)
    assert max(delays) <= inspector.latency()
    assert (
        inspector.latency(at_once=1) >= MAX_GAP + CONTEXT - 1
    )  # otherwise the end of a stretch might not be known in time
    assert np.flatnonzero(np.array(probabilities) == 1).tolist() == expected.tolist()
    at_once = InspectedVideo(inspector, describe_frames(frames)).probabilities
    assert np.flatnonzero(at_once == 1).tolist() == expected.tolist()
    assert np.abs(at_once - probabilities).max() < 1e-5
    causal = list(inspector.inspect(frames, causal=True))
    without_rules = inspector.to("cpu")
    without_rules.rules = False
    assert without_rules.fingerprint != inspector.fingerprint == inspector.to("cpu").fingerprint
    assert not without_rules.to("cpu").rules
    assert list(without_rules.inspect(frames, causal=True)) == causal
    network_probabilities = np.array(list(without_rules.inspect(frames)))
    assert (network_probabilities < 1).all()
    untouched = np.delete(np.arange(500), expected)
    assert (network_probabilities[untouched] == np.array(probabilities)[untouched]).all()
    assert (
        np.abs(InspectedVideo(without_rules, describe_frames(frames)).probabilities - network_probabilities).max()
        < 1e-5
    )
