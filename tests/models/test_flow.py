"""Optical flow: accuracy on known shifts, quantisation and reproducibility."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from jostle.models.extractors.flow import STILL, flow_between, grey, tv_l1
from jostle.models.input_spec import InputSpec
from jostle.models.loading.extractors import load_extractor

HEIGHT, WIDTH = 60, 80


def smooth_image(height: int = 120, width: int = 160) -> np.ndarray:
    """Return a smooth image of integers, identical on every machine."""
    y, x = np.mgrid[:height, :width].astype(np.int64)
    rough = (y * 7919 + x * 104729 + (y // 5) * (x // 7) * 31) % 256
    for axis in (0, 1):
        rough = sum(np.roll(rough, k, axis) for k in range(-3, 4)) // 7
    low, high = rough.min(), rough.max()
    picture = (rough - low) * 255 // (high - low)
    return np.repeat(picture.astype(np.uint8)[..., None], 3, 2)


def shifted_pair(across: int, down: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a window of the image and a second one whose content is shifted right and down."""
    picture = smooth_image()
    y, x = 30, 40
    first = picture[y : y + HEIGHT, x : x + WIDTH]
    return first[None], picture[y - down : y - down + HEIGHT, x - across : x - across + WIDTH][None]


@pytest.mark.parametrize(("across", "down"), [(3, 0), (0, 2), (-2, 1), (4, -3)])
def test_flow_of_a_shift(across: int, down: int) -> None:
    first, second = (grey(frames)[0] for frames in shifted_pair(across, down))
    inside = tv_l1(first, second)[:, 8:-8, 8:-8]
    assert abs(float(np.median(inside[0])) - across) < 0.1
    assert abs(float(np.median(inside[1])) - down) < 0.1


def test_flow_is_quantised_from_minus_20_to_20_pixels() -> None:
    first, second = shifted_pair(4, -2)
    flow = flow_between(first, second)
    assert flow.shape == (1, HEIGHT, WIDTH, 2)
    assert flow.dtype == np.uint8
    centre = np.median(flow[0, 8:-8, 8:-8], (0, 1))
    np.testing.assert_allclose(centre, np.rint((np.array([4, -2]) + 20) * 255 / 40), atol=1)


def test_flow_is_clipped_at_20_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    large_flow = np.full((2, 20, 20), 31.0, np.float32)
    large_flow[1] = -20.5
    monkeypatch.setattr("jostle.models.extractors.flow.tv_l1", lambda first, second: large_flow)
    frames = np.zeros((1, 20, 20, 3), np.uint8)
    flow = flow_between(frames, frames + 1)
    assert (flow[..., 0] == 255).all()
    assert (flow[..., 1] == 0).all()


def test_identical_frames_have_no_flow() -> None:
    first, _ = shifted_pair(1, 1)
    assert (flow_between(first, first) == STILL).all()
    assert not tv_l1(grey(first)[0], grey(first)[0]).any()


def test_flow_does_not_depend_on_the_batch() -> None:
    pairs = [shifted_pair(1, 0), shifted_pair(0, 1), shifted_pair(2, 2)]
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    together = flow_between(first, second, (48, 64), threads=3)
    for flow, (one, other) in zip(together, pairs, strict=True):
        assert np.array_equal(flow, flow_between(one, other, (48, 64))[0])
    assert flow_between(first[:0], second[:0]).shape == (0, HEIGHT, WIDTH, 2)


def test_images_too_small_for_a_pyramid() -> None:
    first, second = (frames[:, :12, :17] for frames in shifted_pair(1, 0))
    assert flow_between(first, second).shape == (1, 12, 17, 2)


def test_flow_is_identical_on_every_processor() -> None:
    """Rounding and order of sums are fixed; a failure means that a compiler has changed them."""
    first, second = shifted_pair(3, -1)
    exact = tv_l1(grey(first)[0], grey(second)[0])
    flow = flow_between(first, second, (48, 64))
    assert hashlib.sha256(exact.tobytes()).hexdigest()[:16] == "3e9bb546cc0e750b"
    assert hashlib.sha256(flow.tobytes()).hexdigest()[:16] == "2de0a483384af05c"


def test_prepared_flow_is_scaled_and_mirrored_without_negation() -> None:
    spec = InputSpec(2, 2, None, 4, crops="ten")
    flow = np.zeros((2, 6, 8, 2), np.uint8)
    flow[1] = 255
    flow[0, :, 0, 0] = 255
    prepared = spec.prepare_flow(flow)
    assert prepared.shape == (10, 2, 2, 4, 4)
    assert prepared[:, :, 1].unique().tolist() == [1.0]
    assert prepared[0, 0, 0, :, 0].tolist() == [1.0] * 4
    assert prepared[5, 0, 0, :, -1].tolist() == [1.0] * 4  # not -1, as in the public features


def test_extractor_computes_flow_of_resized_frames() -> None:
    extractor = load_extractor("i3d_flow", weights="random", resize=(48, 64))
    assert extractor.sees_flow
    assert not load_extractor("puppet_net", weights="random").sees_flow
    first, second = shifted_pair(2, 1)
    assert np.array_equal(extractor.flow(first, second), flow_between(first, second, (48, 64)))
