"""Optical flow: what moves is found, and bytes are the same on every processor."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from jostle.models.extractors.extractor import load_extractor
from jostle.models.extractors.flow import STILL, flow_between, grey, tv_l1
from jostle.models.input_spec import InputSpec

HEIGHT, WIDTH = 60, 80


def ground(height: int = 120, width: int = 160) -> np.ndarray:
    """A smooth picture of whole numbers, the same everywhere."""
    y, x = np.mgrid[:height, :width].astype(np.int64)
    rough = (y * 7919 + x * 104729 + (y // 5) * (x // 7) * 31) % 256
    for axis in (0, 1):
        rough = sum(np.roll(rough, k, axis) for k in range(-3, 4)) // 7
    low, high = rough.min(), rough.max()
    picture = (rough - low) * 255 // (high - low)
    return np.repeat(picture.astype(np.uint8)[..., None], 3, 2)


def shifted(across: int, down: int) -> tuple[np.ndarray, np.ndarray]:
    """A window on the picture, and the next frame, in which everything lies further right and down."""
    picture = ground()
    y, x = 30, 40
    first = picture[y : y + HEIGHT, x : x + WIDTH]
    return first[None], picture[y - down : y - down + HEIGHT, x - across : x - across + WIDTH][None]


@pytest.mark.parametrize(("across", "down"), [(3, 0), (0, 2), (-2, 1), (4, -3)])
def test_a_shift_is_found(across: int, down: int) -> None:
    first, second = (grey(frames)[0] for frames in shifted(across, down))
    inside = tv_l1(first, second)[:, 8:-8, 8:-8]
    assert abs(float(np.median(inside[0])) - across) < 0.1
    assert abs(float(np.median(inside[1])) - down) < 0.1


def test_values_are_bytes_from_minus_twenty_to_twenty() -> None:
    first, second = shifted(4, -2)
    made = flow_between(first, second)
    assert made.shape == (1, HEIGHT, WIDTH, 2)
    assert made.dtype == np.uint8
    centre = np.median(made[0, 8:-8, 8:-8], (0, 1))
    np.testing.assert_allclose(centre, np.rint((np.array([4, -2]) + 20) * 255 / 40), atol=1)


def test_what_moves_further_than_twenty_pixels_is_as_far_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    far = np.full((2, 20, 20), 31.0, np.float32)
    far[1] = -20.5
    monkeypatch.setattr("jostle.models.extractors.flow.tv_l1", lambda first, second: far)
    frames = np.zeros((1, 20, 20, 3), np.uint8)
    made = flow_between(frames, frames + 1)
    assert (made[..., 0] == 255).all()
    assert (made[..., 1] == 0).all()


def test_what_does_not_move_is_still_with_and_without_looking() -> None:
    first, _ = shifted(1, 1)
    assert (flow_between(first, first) == STILL).all()
    assert not tv_l1(grey(first)[0], grey(first)[0]).any()


def test_a_pair_is_the_same_in_any_company() -> None:
    pairs = [shifted(1, 0), shifted(0, 1), shifted(2, 2)]
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    together = flow_between(first, second, (48, 64), threads=3)
    for made, (one, other) in zip(together, pairs, strict=True):
        assert np.array_equal(made, flow_between(one, other, (48, 64))[0])
    assert flow_between(first[:0], second[:0]).shape == (0, HEIGHT, WIDTH, 2)


def test_pictures_too_small_for_smaller_ones() -> None:
    first, second = (frames[:, :12, :17] for frames in shifted(1, 0))
    assert flow_between(first, second).shape == (1, 12, 17, 2)


def test_bytes_and_numbers_do_not_depend_on_the_processor() -> None:
    """One rounding of every number, and one order of every sum: where this fails, a compiler has changed either."""
    first, second = shifted(3, -1)
    exact = tv_l1(grey(first)[0], grey(second)[0])
    made = flow_between(first, second, (48, 64))
    assert hashlib.sha256(exact.tobytes()).hexdigest()[:16] == "3e9bb546cc0e750b"
    assert hashlib.sha256(made.tobytes()).hexdigest()[:16] == "2de0a483384af05c"


def test_a_network_is_shown_flow_from_minus_one_to_one_and_mirrored_as_it_is() -> None:
    spec = InputSpec(2, 2, None, 4, crops="ten")
    flow = np.zeros((2, 6, 8, 2), np.uint8)
    flow[1] = 255
    flow[0, :, 0, 0] = 255
    made = spec.prepare_flow(flow)
    assert made.shape == (10, 2, 2, 4, 4)
    assert made[:, :, 1].unique().tolist() == [1.0]
    assert made[0, 0, 0, :, 0].tolist() == [1.0] * 4
    assert made[5, 0, 0, :, -1].tolist() == [1.0] * 4  # not -1: public features were made so


def test_an_extractor_computes_flow_of_resized_frames() -> None:
    extractor = load_extractor("i3d_flow", weights="random", resize=(48, 64))
    assert extractor.sees_flow
    assert not load_extractor("puppet_net", weights="random").sees_flow
    first, second = shifted(2, 1)
    assert np.array_equal(extractor.flow(first, second), flow_between(first, second, (48, 64)))
