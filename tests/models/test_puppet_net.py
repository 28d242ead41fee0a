"""`puppet_net` and extractors in two parts: equal bits in any company, and the same features either way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import BadValue
from jostle.models.extractors.extractor import FRAMES_AT_ONCE, Extractor, load_extractor


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return load_extractor("puppet_net", weights="random")


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (70, 112, 112, 3), np.uint8)


@pytest.fixture(scope="module")
def seen(extractor: Extractor, frames: np.ndarray) -> np.ndarray:
    return extractor.see(frames)


@given(st.lists(st.integers(0, 69), min_size=1, max_size=2 * FRAMES_AT_ONCE["cpu"]))
@settings(deadline=None, max_examples=8)
def test_a_frame_is_seen_the_same_in_any_company(
    extractor: Extractor, frames: np.ndarray, seen: np.ndarray, rows: list[int]
) -> None:
    assert np.array_equal(extractor.see(frames[rows]), seen[rows])


@given(st.lists(st.integers(0, 54), min_size=1, max_size=80))
@settings(deadline=None, max_examples=20)
def test_a_window_is_joined_the_same_in_any_company(extractor: Extractor, seen: np.ndarray, rows: list[int]) -> None:
    windows = np.stack([seen[i : i + 16] for i in range(55)])
    assert np.array_equal(extractor.join(windows[rows]), extractor.join(windows)[rows])


def test_parts_share_batches_and_are_seen_as_if_alone(
    extractor: Extractor, frames: np.ndarray, seen: np.ndarray
) -> None:
    ends = (5, 5, 40, 69, 70)  # one is empty, one is longer than a batch, one fills what is left of a batch
    parts = [slice(begin, end) for begin, end in zip((0, *ends), ends, strict=False)]
    for part, made in zip(parts, extractor.see_together([frames[part] for part in parts]), strict=True):
        assert np.array_equal(made, seen[part])
    windows = np.stack([seen[i : i + 16] for i in range(20)])
    for part, made in zip(parts, extractor.join_together([windows[part] for part in parts]), strict=True):
        assert np.array_equal(made, extractor.join(windows[part]))


def test_clips_go_through_both_parts(extractor: Extractor, frames: np.ndarray, seen: np.ndarray) -> None:
    clips = np.stack([frames[4 * i : 4 * i + 16] for i in range(5)])
    whole = extractor(clips)
    assert whole.shape == (5, 128)
    assert np.array_equal(whole, extractor.join(np.stack([seen[4 * i : 4 * i + 16] for i in range(5)])))


def test_every_frame_of_a_window_matters_and_so_does_their_order(extractor: Extractor, seen: np.ndarray) -> None:
    window = seen[None, :16]
    base = extractor.join(window)
    for t in range(16):
        other = window.copy()
        other[0, t] = seen[40]
        assert not np.array_equal(extractor.join(other), base), t
    assert not np.allclose(extractor.join(window[:, ::-1]), base)


def test_other_sizes_are_brought_to_its_own(extractor: Extractor) -> None:
    small = np.random.default_rng(1).integers(0, 256, (3, 48, 64, 3), np.uint8)
    assert extractor.see(small).shape == (3, 160)


def test_an_extractor_of_windows_does_not_see_frames(frames: np.ndarray) -> None:
    whole = load_extractor("i3d_rgb", weights="random")
    assert whole.frame_dim is None
    with pytest.raises(BadValue, match="sees a window whole; call it on clips of 16 frames"):
        whole.see(frames)


def test_clips_shorter_than_a_window_are_refused(extractor: Extractor, frames: np.ndarray) -> None:
    with pytest.raises(BadValue, match="at least 16 frames, not 9"):
        extractor(frames[None, :9])


def test_no_frames_are_seen_as_nothing(extractor: Extractor) -> None:
    assert extractor.see(np.zeros((0, 112, 112, 3), np.uint8)).shape == (0, 160)
