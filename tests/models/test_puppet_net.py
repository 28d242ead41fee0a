"""Two-part extractors such as `puppet_net`: features do not depend on batching or on the path taken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import BadValue
from jostle.models.extractors.extractor import FRAMES_AT_ONCE, Extractor
from jostle.models.loading.extractors import load_extractor


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return load_extractor("puppet_net", weights="random")


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (70, 112, 112, 3), np.uint8)


@pytest.fixture(scope="module")
def frame_features(extractor: Extractor, frames: np.ndarray) -> np.ndarray:
    return extractor.see(frames)


@given(st.lists(st.integers(0, 69), min_size=1, max_size=2 * FRAMES_AT_ONCE["cpu"]))
@settings(deadline=None, max_examples=8)
def test_frame_features_do_not_depend_on_the_batch(
    extractor: Extractor, frames: np.ndarray, frame_features: np.ndarray, rows: list[int]
) -> None:
    assert np.array_equal(extractor.see(frames[rows]), frame_features[rows])


@given(st.lists(st.integers(0, 54), min_size=1, max_size=80))
@settings(deadline=None, max_examples=20)
def test_window_features_do_not_depend_on_the_batch(
    extractor: Extractor, frame_features: np.ndarray, rows: list[int]
) -> None:
    windows = np.stack([frame_features[i : i + 16] for i in range(55)])
    assert np.array_equal(extractor.join(windows[rows]), extractor.join(windows)[rows])


def test_batched_parts_equal_single_parts(extractor: Extractor, frames: np.ndarray, frame_features: np.ndarray) -> None:
    ends = (5, 5, 40, 69, 70)  # one is empty, one is longer than a batch, one fills the rest of a batch
    parts = [slice(begin, end) for begin, end in zip((0, *ends), ends, strict=False)]
    for part, features in zip(parts, extractor.see_together([frames[part] for part in parts]), strict=True):
        assert np.array_equal(features, frame_features[part])
    windows = np.stack([frame_features[i : i + 16] for i in range(20)])
    for part, features in zip(parts, extractor.join_together([windows[part] for part in parts]), strict=True):
        assert np.array_equal(features, extractor.join(windows[part]))


def test_extractor_applies_see_and_join(extractor: Extractor, frames: np.ndarray, frame_features: np.ndarray) -> None:
    clips = np.stack([frames[4 * i : 4 * i + 16] for i in range(5)])
    features = extractor(clips)
    assert features.shape == (5, 128)
    assert np.array_equal(features, extractor.join(np.stack([frame_features[4 * i : 4 * i + 16] for i in range(5)])))


def test_features_depend_on_every_frame_and_their_order(extractor: Extractor, frame_features: np.ndarray) -> None:
    window = frame_features[None, :16]
    base = extractor.join(window)
    for t in range(16):
        other = window.copy()
        other[0, t] = frame_features[40]
        assert not np.array_equal(extractor.join(other), base), t
    assert not np.allclose(extractor.join(window[:, ::-1]), base)


def test_frames_of_other_sizes_are_resized(extractor: Extractor) -> None:
    small = np.random.default_rng(1).integers(0, 256, (3, 48, 64, 3), np.uint8)
    assert extractor.see(small).shape == (3, 160)


def test_window_extractor_refuses_single_frames(frames: np.ndarray) -> None:
    window_extractor = load_extractor("i3d_rgb", weights="random")
    assert window_extractor.frame_dim is None
    with pytest.raises(BadValue, match="sees a window whole; call it on clips of 16 frames"):
        window_extractor.see(frames)


def test_clips_shorter_than_a_window_are_refused(extractor: Extractor, frames: np.ndarray) -> None:
    with pytest.raises(BadValue, match="at least 16 frames, not 9"):
        extractor(frames[None, :9])


def test_empty_input_gives_empty_features(extractor: Extractor) -> None:
    assert extractor.see(np.zeros((0, 112, 112, 3), np.uint8)).shape == (0, 160)
