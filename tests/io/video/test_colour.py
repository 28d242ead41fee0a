"""Colour conversion: the documented formula, equal to FFmpeg on x86-64 and identical on every processor."""

from __future__ import annotations

import hashlib
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter

from jostle.core.types.clip import Frame
from jostle.io.video.colour import SHARES, FromRgb, ToRgb, rgb_weights, row_taps

Planes = list[npt.NDArray[np.uint8]]

NUMBERS = {"bt709": 1, "fcc": 4, "bt601": 6, "smpte240m": 7, "bt2020": 9}  # ITU-T H.273
FFMPEG = {"bt709": "ITU709", "fcc": "FCC", "bt601": "ITU601", "smpte240m": "SMPTE240M", "bt2020": "BT2020"}
SIZES = [(2, 2), (4, 7), (12, 1), (30, 33), (48, 64), (50, 129)]


def frame_of(planes: Planes, layout: str, matrix: str = "bt601", *, full_range: bool = False) -> VideoFrame:
    height, width = planes[0].shape
    frame = VideoFrame(width, height, layout)
    for plane, values in zip(frame.planes, planes, strict=True):
        rows = np.zeros((plane.height, plane.line_size), np.uint8)
        rows[:, : plane.width] = values
        plane.update(rows.tobytes())
    frame.colorspace = NUMBERS[matrix]
    frame.color_range = ColorRange.JPEG if full_range else ColorRange.MPEG
    return frame


def planes_of(frame: VideoFrame) -> Planes:
    planes = []
    for plane in frame.planes:
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
        planes.append(rows[: plane.height, : plane.width].copy())
    return planes


def random_planes(size: tuple[int, int], layout: str) -> Planes:
    rng = np.random.default_rng([*size, len(layout)])
    height, width = size
    chroma = (height // 2 if "420" in layout else height, (width + 1) // 2)
    return [rng.integers(0, 256, shape, dtype=np.uint8) for shape in (size, chroma, chroma)]


def convert_by_formula(planes: Planes, layout: str, matrix: str, *, full_range: bool) -> Frame:
    """Convert with NumPy by the formula that `colour.py` documents."""
    height, width = planes[0].shape
    offset, luma, v_red, u_green, v_green, u_blue = (int(each) for each in rgb_weights(matrix, full_range=full_range))
    rows, columns = np.arange(height) // (2 if "420" in layout else 1), np.arange(width) // 2
    y = (planes[0].astype(int) * 8 - offset) * luma >> 16
    u, v = ((plane.astype(int) * 8 - 1024)[np.ix_(rows, columns)] for plane in planes[1:])
    red, blue = y + (v * v_red >> 16), y + (u * u_blue >> 16)
    green = y + (u * u_green >> 16) + (v * v_green >> 16)
    return np.stack([red, green, blue], -1).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("matrix", NUMBERS)
@pytest.mark.parametrize("layout", ["yuv420p", "yuv422p"])
def test_ordinary_video_is_converted_by_the_formula(layout: str, matrix: str) -> None:
    for size, full_range in product(SIZES, (False, True)):
        planes = random_planes(size, layout)
        frame = ToRgb(size, 0)(frame_of(planes, layout, matrix, full_range=full_range))
        assert np.array_equal(frame, convert_by_formula(planes, layout, matrix, full_range=full_range)), (
            size,
            full_range,
        )


@pytest.mark.parametrize("matrix", NUMBERS)
@pytest.mark.parametrize("layout", ["yuv420p", "yuv422p"])
def test_conversion_is_close_to_ffmpeg_on_every_processor(layout: str, matrix: str) -> None:
    even = [size for size in SIZES if size[1] % 2 == 0]  # FFmpeg smooths the chroma of odd ones, except on x86-64
    for size, full_range in product(even, (False, True)):
        frame = frame_of(random_planes(size, layout), layout, matrix, full_range=full_range)
        default = VideoReformatter().reformat(
            frame,
            format="rgb24",
            src_colorspace=Colorspace[FFMPEG[matrix]],
            src_color_range=ColorRange.JPEG if full_range else ColorRange.MPEG,
            interpolation=Interpolation.BICUBIC,
            threads=1,
        )
        difference = np.abs(ToRgb(size, 0)(frame).astype(int) - default.to_ndarray()).max()
        assert difference <= 3, (size, full_range)


def test_pure_colours_are_converted_correctly() -> None:
    for matrix, (red, blue) in SHARES.items():
        for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (40, 90, 200)):
            r, g, b = (part / 255 for part in colour)
            luma = float(red) * r + float(1 - red - blue) * g + float(blue) * b
            u, v = (b - luma) / (2 - 2 * float(blue)), (r - luma) / (2 - 2 * float(red))
            samples = (16 + 219 * luma, 128 + 224 * u, 128 + 224 * v)
            planes = [np.full((2, 2) if i == 0 else (1, 1), round(part), np.uint8) for i, part in enumerate(samples)]
            converted = ToRgb((2, 2), 0)(frame_of(planes, "yuv420p", matrix))
            assert np.abs(converted - np.array(colour)).max() <= 4, (matrix, colour)


@pytest.mark.parametrize("size", [(12, 34), (48, 64), (50, 130), (96, 16)])
def test_reducing_chroma_is_within_a_level_of_exact_rounding(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(size).integers(0, 256, (*size, 3), dtype=np.uint8)
    exact = VideoReformatter().reformat(
        VideoFrame.from_ndarray(pixels, format="rgb24"),
        format="yuv420p",
        dst_colorspace=Colorspace.ITU601,
        dst_color_range=ColorRange.MPEG,
        interpolation=Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT,
        threads=1,
    )
    planes, expected = planes_of(FromRgb("yuv420p")(pixels)), planes_of(exact)
    assert np.array_equal(planes[0], expected[0])
    for plane, expected_plane in zip(planes[1:], expected[1:], strict=True):
        assert np.abs(plane.astype(int) - expected_plane).max() <= 1
        assert np.array_equal(plane[-1], expected_plane[-1]), "the last row is rounded exactly"


def test_weights_of_rows_add_up() -> None:
    for height in (2, 4, 8, 12, 100):
        rows, weights = row_taps(height)
        assert (weights.sum(axis=1) == 4096).all()
        assert rows.min() >= 0
        assert rows.max() < height
    assert row_taps(100)[1][20].tolist() == [-58, -172, 492, 1786, 1786, 492, -172, -58]


def moving_picture(number: int) -> Frame:
    """Draw a blob over a texture, in integer arithmetic."""
    y, x = np.mgrid[0:96, 0:128]
    grain = np.arange(96 * 128 * 3).reshape(96, 128, 3) * 2654435761 % 61
    inside = (x - 20 - 3 * number) ** 2 + (y - 48) ** 2 < 400
    blue = np.where(inside, 230, x * y // 16 % 256)
    base = np.stack([(x * 2 + number * 3) % 256, (y * 2 + x + number * 5) % 256, blue], -1)
    return (base * 3 // 4 + grain).clip(0, 255).astype(np.uint8)


def test_bytes_equal_those_of_ffmpeg_on_x86_64() -> None:
    # Hashes of the default output of FFmpeg 8.1 (PyAV 18.1) on x86-64.
    encoded_hash, decoded_hash = hashlib.sha256(), hashlib.sha256()
    convert, restore = FromRgb("yuv420p"), ToRgb((96, 128), 0)
    for number in range(24):
        frame = convert(moving_picture(number))
        for plane in planes_of(frame):
            encoded_hash.update(plane.tobytes())
        decoded_hash.update(restore(frame).tobytes())
    assert encoded_hash.hexdigest()[:16] == "a46c8a720a5aa563"
    assert decoded_hash.hexdigest()[:16] == "aeef96f3c5757759"
