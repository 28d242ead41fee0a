"""Frames that show nothing: damage where a scene goes on behind them, content where it goes or comes by degrees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from jostle.core.types.clip import Frames
from jostle.mending.blank_frames import CONTEXT, MAX_GAP, find_blank, find_lost, find_lost_in_video
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors


def scene(frames: int, seed: int = 0, speed: int = 1, low: int = 20, high: int = 236) -> Frames:
    """Squares of many lights and colours, that move."""
    coarse = np.random.default_rng(seed).integers(low, high, (8, 12, 3), np.uint8)
    ground = np.repeat(np.repeat(coarse, 8, axis=0), 8, axis=1)
    return np.stack([np.roll(ground, speed * t, axis=1) for t in range(frames)])


def lost_of(seen: Descriptors) -> np.ndarray:
    return find_lost(find_blank(seen), lambda a, b: seen[a:b])


def lost(frames: Frames) -> list[int]:
    return np.flatnonzero(lost_of(describe_frames(frames))).tolist()


@pytest.mark.parametrize("grey", [0, 48, 128, 255])
@pytest.mark.parametrize("many", [1, 5, MAX_GAP])
def test_a_picture_that_is_gone_and_comes_back_was_lost(grey: int, many: int) -> None:
    frames = scene(60 + MAX_GAP, speed=0)
    frames[20 : 20 + many] = grey
    assert lost(frames) == list(range(20, 20 + many))


def test_one_colour_is_enough_whichever_and_a_codec_may_have_touched_it() -> None:
    frames = scene(40)
    frames[20:23] = (200, 30, 90)
    frames[20:23, 20:28, 30:44:2] += 4
    assert lost(frames) == [20, 21, 22]
    frames[20:23, :48] += 20  # two colours are something
    assert lost(frames) == []
    frames[20:23] = 60
    frames[20:23, ::2] += 3  # and so is a pattern
    assert lost(frames) == []


def test_a_camera_that_moves_on_meanwhile_still_shows_the_same_lights_and_colours() -> None:
    frames = scene(80, speed=3)
    frames[20:30] = 0
    assert lost(frames) == list(range(20, 30))


def test_behind_a_cut_to_black_another_scene_begins() -> None:
    frames = np.concatenate([scene(30), np.zeros((12, 64, 96, 3), np.uint8), scene(30, seed=1)])
    assert lost(frames) == []


@pytest.mark.parametrize("slow", [2, 5, 30])
@pytest.mark.parametrize("way", ["out", "in", "both"])
def test_a_fade_is_content(slow: int, way: str) -> None:
    frames, times = scene(120), np.arange(120)
    gain = np.clip((np.abs(times - 60) - 6) / slow, 0, 1)
    if way != "both":
        gain[times > 60 if way == "out" else times < 60] = 1
        gain[55:66] = 0
    assert lost((frames * gain[:, None, None, None]).astype(np.uint8)) == []


def test_a_flash_that_dies_away_is_content_and_a_frame_of_white_alone_is_not() -> None:
    frames = scene(60)
    light = np.array([255, 170, 110, 60, 30, 10])
    flash = frames.copy()
    flash[30:36] = 255 - (255 - flash[30:36]) * (255 - light)[:, None, None, None] / 255
    assert find_blank(describe_frames(flash))[30]
    assert lost(flash) == []
    frames[30] = 255  # nobody could tell it from such a flash in one frame
    assert lost(frames) == [30]


def test_of_what_has_no_two_ends_or_is_long_or_hardly_seen_nothing_is_said() -> None:
    frames = scene(60 + MAX_GAP)
    for lo, hi in ((0, 10), (len(frames) - 10, len(frames)), (20, 21 + MAX_GAP)):
        struck = frames.copy()
        struck[lo:hi] = 0
        assert lost(struck) == []
    faint = scene(60, low=100, high=110)
    faint[20:25] = 0
    assert find_blank(describe_frames(faint)).tolist() == [20 <= t < 25 for t in range(60)]
    assert lost(faint) == []


def test_a_video_with_nothing_else_in_it_was_lost_as_a_whole() -> None:
    seen = describe_frames(np.zeros((5, 20, 20, 3), np.uint8))
    assert find_lost_in_video(find_blank(seen), lambda a, b: seen[a:b]).all()
    assert not lost_of(seen).any()
    none = np.zeros((0, CHANNELS, CELLS, CELLS), np.uint8)
    assert lost_of(none).shape == (0,)


def strewn(frames: int, seed: int) -> Descriptors:
    """A scene with stretches of nothing of all lengths in it."""
    film, rng, at = scene(frames, seed=seed), np.random.default_rng(seed), 0
    while at < frames:
        at += int(rng.choice([0, 1, 2, 5, 30]))
        many = int(rng.choice([1, 2, 7, 40, MAX_GAP - 1, MAX_GAP, MAX_GAP + 1]))
        film[at : at + many] = rng.choice([0, 255])
        at += many + 1
    return describe_frames(film)


@pytest.mark.parametrize("seed", range(6))
def test_only_so_many_frames_around_one_matter(seed: int) -> None:
    seen = strewn(700, seed)
    whole, reach = lost_of(seen), MAX_GAP + CONTEXT
    for at in range(0, 700, 13):
        first = max(at - reach, 0)
        assert lost_of(seen[first : at + reach])[at - first] == whole[at]


def test_an_inspector_is_told_of_them_streamed_and_at_once() -> None:
    torch = pytest.importorskip("torch")
    from jostle.mending.inspected_video import InspectedVideo
    from jostle.mending.inspector import Inspector, InspectorNetworks

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        inspector = Inspector(InspectorNetworks(), {"both": 0.5, "causal": 0.5}, name="x")
    frames = scene(500, speed=0)
    for lo, many in ((9, 3), (40, MAX_GAP), (150, MAX_GAP + 1), (260, 1), (262, 20), (400, 90), (495, 5)):
        frames[lo : lo + many] = 255
    known, shown = np.flatnonzero(lost_of(describe_frames(frames))), 0
    assert len(known) == 3 + MAX_GAP + 1 + 20 + 90

    def camera() -> Iterator[np.ndarray]:
        nonlocal shown
        for frame in frames:
            shown += 1
            yield frame

    told, late = [], []
    for number, probability in enumerate(inspector.inspect(camera())):
        told.append(probability)
        late.append(shown - 1 - number)
    assert max(late) <= inspector.latency()
    assert inspector.latency(at_once=1) >= MAX_GAP + CONTEXT - 1  # or a stretch's end might not be known in time
    assert np.flatnonzero(np.array(told) == 1).tolist() == known.tolist()
    at_once = InspectedVideo(inspector, describe_frames(frames)).probabilities
    assert np.flatnonzero(at_once == 1).tolist() == known.tolist()
    assert np.abs(at_once - told).max() < 1e-5
    causal = list(inspector.inspect(frames, causal=True))
    other = inspector.to("cpu")
    other.rules = False
    assert other.fingerprint != inspector.fingerprint == inspector.to("cpu").fingerprint
    assert not other.to("cpu").rules
    assert list(other.inspect(frames, causal=True)) == causal
    alone = np.array(list(other.inspect(frames)))
    assert (alone < 1).all()
    untouched = np.delete(np.arange(500), known)
    assert (alone[untouched] == np.array(told)[untouched]).all()
    assert np.abs(InspectedVideo(other, describe_frames(frames)).probabilities - alone).max() < 1e-5
