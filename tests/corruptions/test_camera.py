"""Rotated and enlarged frames, compared with the libraries whose rules they follow."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jostle.corruptions.camera import _turned
from jostle.corruptions.kernels.pixels import enlarged
from jostle.errors import BadValue

SIZES = [(1, 1), (1, 7), (5, 1), (2, 2), (9, 14), (40, 31), (224, 224)]


def noise(size: tuple[int, int]) -> np.ndarray:
    frame = np.random.default_rng(3).integers(1, 256, (*size, 3), dtype=np.uint8)
    frame.setflags(write=False)
    return frame


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("degrees", [0.0, 7.5, -19.0, 45.0, 90.0, -90.0, 133.0, 180.0, 270.0])
def test_rotation_equals_pillow(size: tuple[int, int], degrees: float) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed; it comes with the report extra")
    frame = noise(size)
    # Pillow transposes at right angles, which no published table uses for frames that are not square.
    if degrees % 90 == 0 and size[0] != size[1]:
        degrees += 0.25
    # Writing beyond a frame would change the next one.
    guard = np.full(frame.size + 8, 7, np.uint8)
    out = guard[4:-4].reshape(frame.shape)
    assert np.array_equal(_turned(frame, degrees, out), np.asarray(image.fromarray(frame).rotate(degrees)))
    assert np.all(guard[:4] == 7)
    assert np.all(guard[-4:] == 7)


def test_a_frame_too_large_for_its_indices_is_refused() -> None:
    strip = np.broadcast_to(np.zeros(3, np.uint8), (1, 1 << 16, 3))
    with pytest.raises(BadValue, match="65536 x 1 pixels"):
        _turned(strip, 10.0, np.empty((1, 1, 3), np.uint8))


@pytest.mark.parametrize("size", SIZES)
def test_enlargement_equals_opencv(size: tuple[int, int]) -> None:
    frame = noise(size)
    for share in (0.3, 0.85, 1.0):
        tall, wide = (max(round(side * share), 1) for side in size)
        for top, left in {(0, 0), (size[0] - tall, size[1] - wide)}:
            window = frame[top : top + tall, left : left + wide]
            expected = cv2.resize(window, size[::-1], interpolation=cv2.INTER_LINEAR)
            out = enlarged(frame, top, left, tall, wide, np.empty_like(frame))
            assert np.array_equal(out, expected), (share, top, left)
