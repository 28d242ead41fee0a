"""Faults F98 and F99: folders of images with an invalid frame rate, or with images too large or unreadable."""

from __future__ import annotations

import os
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from helpers.refusals import refused
from jostle.errors import MediaError
from jostle.io.video.decode import Reader
from jostle.io.video.frame_folder import IMAGE_SUFFIXES
from jostle.io.video.images import claimed_size
from jostle.io.video.validation import Limits


def write(path: Path, size: tuple[int, int] = (6, 8)) -> Path:
    cv2.imwrite(str(path), np.full((*size, 3), 90, np.uint8))
    return path


def assert_refused(folder: Path, fault: str, message: str) -> None:
    with refused(fault, MediaError, match=message):
        Reader(folder)


RATES = {
    "an exponent without end": '{"fps": "1e999999999"}',
    "too small for a float": '{"fps": "1e-400"}',
    "infinite": '{"fps": Infinity}',
    "not a number": '{"fps": NaN}',
    "nothing": '{"fps": "0"}',
    "backwards": '{"fps": "-5"}',
    "true": '{"fps": true}',
    "too fast": '{"fps": 1e300}',
    "too slow": '{"fps": "1/999999999999"}',
    "a list": '{"fps": [24]}',
    "long": '{"fps": %s}' % ("9" * 5000),
    "deep": "[" * 100_000,
    "no object": "[24]",
    "no rate": "{}",
    "not UTF-8": '{"fps": "\udcff"}',
}


@pytest.mark.fault("F98")
@pytest.mark.parametrize("case", RATES)
def test_F98_invalid_rates_are_refused(case: str, tmp_path: Path) -> None:
    write(tmp_path / "1.png")
    (tmp_path / "times.json").write_bytes(RATES[case].encode("utf-8", "surrogateescape"))
    assert_refused(tmp_path, "F98", r"times\.json: is damaged: 'fps' is no number between .* take the file out")


@pytest.mark.fault("F98")
@pytest.mark.parametrize("text", ['"1/0"', '"0"', '"1e999999999"', "0.04", "NaN", '"-1/25"', "[1]", '"1/9999999999"'])
def test_F98_invalid_time_bases_are_refused(text: str, tmp_path: Path) -> None:
    write(tmp_path / "1.png")
    (tmp_path / "times.json").write_text(f'{{"fps": "25", "time_base": {text}, "ticks": [0]}}')
    assert_refused(tmp_path, "F98", r"times\.json: is damaged: 'time_base' is no fraction of a second")


@pytest.mark.fault("F98")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"30000/1001"', Fraction(30000, 1001)),
        ("24", Fraction(24)),
        ("29.97", Fraction(30000, 1001)),
        ('"12.5"', Fraction(25, 2)),
        ('"1/60"', Fraction(1, 60)),
    ],
)
def test_F98_valid_rates_are_read(text: str, expected: Fraction, tmp_path: Path) -> None:
    write(tmp_path / "1.png")
    (tmp_path / "times.json").write_text(f'{{"fps": {text}}}')
    with Reader(tmp_path) as reader:
        assert reader.fps == expected


def png(width: int, height: int) -> bytes:
    """Return the header of a PNG image without its pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.fault("F99")
@pytest.mark.parametrize("side", [30_000, 100_000, 2**31 - 1])
def test_F99_an_image_that_claims_more_pixels_than_the_limit(side: int, tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(png(side, side))
    assert_refused(
        tmp_path, "F99", rf"1\.png: claims {side}x{side}, more than 64000000 pixels; raise JOSTLE_MAX_PIXELS"
    )


@pytest.mark.fault("F99")
def test_F99_images_have_the_limits_of_videos(tmp_path: Path) -> None:
    write(tmp_path / "1.png", (60, 80))
    with Reader(tmp_path, limits=Limits(max_pixels=4800)) as reader:
        assert reader.size == (60, 80)
    with pytest.raises(MediaError, match="claims 80x60, more than 4799 pixels"):
        Reader(tmp_path, limits=Limits(max_pixels=4799))
    write(tmp_path / "2.png")
    with pytest.raises(MediaError, match="holds more than 1 images"):
        Reader(tmp_path, limits=Limits(max_frames=1))


@pytest.mark.fault("F99")
@pytest.mark.parametrize("ending", IMAGE_SUFFIXES)
def test_F99_the_size_is_known_before_anything_is_decoded(ending: str, tmp_path: Path) -> None:
    data = write(tmp_path / f"1{ending}", (37, 101)).read_bytes()
    assert claimed_size(data) == (37, 101)
    with Reader(tmp_path) as reader:
        assert reader.size == (37, 101)
    assert all(claimed_size(data[:cut]) in (None, (37, 101)) for cut in range(len(data)))


@pytest.mark.fault("F99")
def test_F99_a_png_chunk_that_claims_more_than_the_file(tmp_path: Path) -> None:
    data = png(32, 24)
    offset = data.index(b"IDAT") - 4
    (tmp_path / "1.png").write_bytes(
        data[:offset] + b"\xff\x00\x02\xc4" + data[offset + 4 :]
    )  # OpenCV allocated 4 GB for it
    assert claimed_size((tmp_path / "1.png").read_bytes()) is None
    assert_refused(tmp_path, "F4", r"1\.png: is not an image that can be decoded")


@pytest.mark.fault("F99")
def test_F99_a_file_larger_than_any_image_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "1.png").open("wb") as file:
        file.truncate(1 << 32)
    assert_refused(tmp_path, "F99", r"1\.png: is larger than \d+ bytes")


@pytest.mark.fault("F99")
@pytest.mark.parametrize("name", ["1.png", "times.json"])
def test_F99_a_named_pipe_among_the_images_is_refused(name: str, tmp_path: Path) -> None:
    write(tmp_path / "0.png" if name == "times.json" else tmp_path / "2.png")
    os.mkfifo(tmp_path / name)
    assert_refused(tmp_path, "F18", f"{name}: is a named pipe; give a regular file")


@pytest.mark.fault("F99")
def test_F99_file_names_with_superscript_digits(tmp_path: Path) -> None:
    write(tmp_path / "²1.png")
    with Reader(tmp_path) as reader:
        assert reader.names == ("²1.png",)
