"""A folder of images as a video."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from jostle.errors import MediaError
from jostle.media.encode import Writer
from jostle.media.images import ImageSequence


def write(path: Path, level: int, size: tuple[int, int] = (6, 8)) -> None:
    image = np.zeros((*size, 3), np.uint8)
    image[..., 0] = level  # red
    cv2.imwrite(str(path), image[..., ::-1])


def test_frames_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        write(tmp_path / f"frame-{number}.png", number)
    (tmp_path / "notes.txt").write_text("no image")
    found = ImageSequence(tmp_path)
    assert (len(found), found.size, found.fps) == (3, (6, 8), Fraction(30))
    assert found.names == ("frame-2.png", "frame-9.png", "frame-10.png")
    assert found.block(0, 3)[:, 0, 0].tolist() == [[2, 0, 0], [9, 0, 0], [10, 0, 0]]
    assert found.number_of("frame-9.png") == 1
    assert found.end_s == pytest.approx(0.1)
    with pytest.raises(MediaError, match=r"frame-3\.png: no such image"):
        found.number_of("frame-3.png")


def test_what_jostle_wrote_is_read_back(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (4, 6, 8, 3), np.uint8)
    with Writer(tmp_path / "film", size=(6, 8), fps=12) as writer:
        for tick, frame in enumerate(pictures):
            writer.write(frame, tick)
    found = ImageSequence(tmp_path / "film")
    assert found.fps == 12
    assert (found.block(0, 4) == pictures).all()


def test_bad_images_are_named(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="holds no images"):
        ImageSequence(tmp_path)
    write(tmp_path / "1.png", 1)
    write(tmp_path / "2.png", 2, (5, 8))
    (tmp_path / "3.png").write_bytes(b"not an image")
    (tmp_path / "4.png").touch()
    found = ImageSequence(tmp_path)
    with pytest.raises(MediaError, match=r"2\.png: 8x5, where the first image is 8x6"):
        found.block(1, 2)
    for number, said in ((2, "not an image"), (3, "empty file")):
        with pytest.raises(MediaError, match=said):
            found.block(number, number + 1)
    (tmp_path / "times.json").write_text('{"fps": "0/0"}')
    with pytest.raises(MediaError, match="damaged"):
        ImageSequence(tmp_path)
