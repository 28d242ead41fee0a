"""Whole-number loops between RGB and planes of luma and chroma: the same bytes on every processor.

FFmpeg's converter has code of its own for each processor, and they round differently: on aarch64 a decoded frame is
up to three grey levels from the one on x86-64. The loops here compute what FFmpeg does on x86-64 by default, truncated
products and all, so that pixels equal those which most readers and most published numbers were made with.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import floor

import numpy as np
import numpy.typing as npt
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter

from jostle.core.kernels import inlined, kernel, read_only
from jostle.core.types.clip import Frame

Plane = npt.NDArray[np.uint8]
Weights = npt.NDArray[np.int16]

# Products are cut to their upper 16 bits, so weights are scaled by 2^13 and samples by 2^3.
_WEIGHT, _SAMPLE = 1 << 13, 1 << 3
# Shares of red and blue in luma, as in ITU-T H.273.
SHARES = {
    "bt709": (Fraction("0.2126"), Fraction("0.0722")),
    "fcc": (Fraction("0.30"), Fraction("0.11")),
    "bt601": (Fraction("0.299"), Fraction("0.114")),
    "smpte240m": (Fraction("0.212"), Fraction("0.087")),
    "bt2020": (Fraction("0.2627"), Fraction("0.0593")),
}


@cache
def rgb_weights(matrix: str, *, full_range: bool) -> Weights:
    """(6,): luma's offset and weight, then the weights of V in red, U in green, V in green and U in blue."""
    red, blue = SHARES[matrix]
    green = 1 - red - blue
    # At first with 16 binary places and for chroma of limited range, as tables of the matrices are usually given.
    scale = Fraction(255, 224) * (1 << 16)
    v_red, u_blue = _nearest(2 * (1 - red) * scale), _nearest(2 * (1 - blue) * scale)
    u_green = _nearest(2 * blue * (1 - blue) / green * scale)
    v_green = _nearest(2 * red * (1 - red) / green * scale)
    if full_range:
        offset, luma = 0, 1 << 16
        v_red, u_green, v_green, u_blue = (each * 224 // 255 for each in (v_red, u_green, v_green, u_blue))
    else:
        offset, luma = 16, (255 << 16) // 219
    scaled = [each * _WEIGHT + (1 << 15) >> 16 for each in (luma, v_red, -u_green, -v_green, u_blue)]
    weights = np.array([offset * _SAMPLE, *scaled], np.int16)
    weights.flags.writeable = False
    return weights


def _nearest(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


@inlined
def _high(a: np.int16, b: np.int16) -> np.int16:
    """Return the upper half of a product; each step is cast, as Numba would use 64 bits and a quarter of the width."""
    return np.int16(np.int32(np.int32(a) * np.int32(b)) >> np.int32(16))


@inlined
def _byte(value: np.int16) -> np.uint8:
    return np.uint8(min(max(value, np.int16(0)), np.int16(255)))


@kernel
def _chroma_terms(u: Plane, v: Plane, weights: Weights, red: Weights, green: Weights, blue: Weights) -> None:
    """What chroma adds to two neighbouring pixels, for one row."""
    for i in range(len(u)):
        du = np.int16(np.int16(np.int16(u[i]) << np.int16(3)) - np.int16(1024))
        dv = np.int16(np.int16(np.int16(v[i]) << np.int16(3)) - np.int16(1024))
        r = _high(dv, weights[2])
        g = np.int16(_high(du, weights[3]) + _high(dv, weights[4]))
        b = _high(du, weights[5])
        left = np.uintp(i) * np.uintp(2)  # unsigned: a signed index is tested for counting from the end
        right = left + np.uintp(1)
        red[left] = r
        red[right] = r
        green[left] = g
        green[right] = g
        blue[left] = b
        blue[right] = b


@kernel
def _rgb_row(
    luma: Plane, red: Weights, green: Weights, blue: Weights, offset: np.int16, weight: np.int16, out: Plane
) -> None:
    for x in range(len(luma)):
        y = _high(np.int16(np.int16(np.int16(luma[x]) << np.int16(3)) - offset), weight)
        place = np.uintp(x) * np.uintp(3)
        out[place] = _byte(np.int16(y + red[x]))
        out[place + np.uintp(1)] = _byte(np.int16(y + green[x]))
        out[place + np.uintp(2)] = _byte(np.int16(y + blue[x]))


@kernel
def to_rgb(y: Plane, u: Plane, v: Plane, rows: int, weights: Weights, out: Plane) -> None:
    """Fill `out`, (H, 3 W), from luma and from chroma of half its width, each sample of which covers `rows` rows.

    A chroma sample colours all the pixels it covers. Planes are given with the padding of their rows, so that they are
    contiguous, which is what the compiled loops are fast on.
    """
    height, width = len(out), out.shape[1] // 3
    half = (width + 1) // 2
    red, green, blue = np.empty(2 * half, np.int16), np.empty(2 * half, np.int16), np.empty(2 * half, np.int16)
    for i in range(height):
        if i % rows == 0:
            _chroma_terms(u[i // rows, :half], v[i // rows, :half], weights, red, green, blue)
        _rgb_row(y[i, :width], red, green, blue, weights[0], weights[1], out[i])


# Weights of red, green and blue in luma, U and V: BT.601, limited range, 15 binary places, FFmpeg's rounding of them.
_Y = (8414, 16519, 3208)
_U = (-4865, -9528, 14392)
_V = (14392, -12061, -2332)
_LUMA_BIAS = (16 << 15) + (1 << 8) + (1 << 14)  # black, and both roundings: to 6 binary places, then to none
_CHROMA_BIAS = (256 << 15) + (1 << 9)  # grey, for the sum of two pixels
_TAPS = 8


@cache
def row_taps(height: int) -> tuple[npt.NDArray[np.int32], Weights]:
    """(H/2, 8) rows and their weights, of which each row of reduced chroma is made; weights add up to 4096.

    The cubic of FFmpeg (B = 0, C = 0.6) at half size. Rows beyond an edge are those of the edge.
    """
    cubic = [_cubic(Fraction(abs(2 * k - 1), 4)) for k in range(-3, 5)]
    rows = np.zeros((height // 2, _TAPS), np.int32)
    weights = np.zeros((height // 2, _TAPS), np.int16)
    for i in range(height // 2):
        shares: dict[int, Fraction] = {}
        for k, share in zip(range(-3, 5), cubic, strict=True):
            row = min(max(2 * i + k, 0), height - 1)
            shares[row] = shares.get(row, Fraction(0)) + share
        left_over = Fraction(0)
        for place, (row, share) in enumerate(shares.items()):
            exact = share * 4096 + left_over
            rows[i, place] = row
            weights[i, place] = floor(exact + Fraction(1, 2))
            left_over = exact - int(weights[i, place])
    for array in (rows, weights):
        array.flags.writeable = False
    return rows, weights


def _cubic(distance: Fraction) -> Fraction:
    c = Fraction("0.6")
    if distance < 1:
        value = (12 - 6 * c) * distance**3 + (6 * c - 18) * distance**2 + 6
    else:
        value = c * (-6 * distance**3 + 30 * distance**2 - 48 * distance + 24)
    return value / 12  # of which the eight taps add up to 1


@kernel
def _split_row(rgb: Plane, red: Weights, green: Weights, blue: Weights) -> None:
    for x in range(len(red)):
        place = np.uintp(x) * np.uintp(3)
        red[x] = np.int16(rgb[place])
        green[x] = np.int16(rgb[place + np.uintp(1)])
        blue[x] = np.int16(rgb[place + np.uintp(2)])


@kernel
def _luma_row(red: Weights, green: Weights, blue: Weights, out: Plane) -> None:
    for x in range(len(red)):
        out[x] = np.uint8((_Y[0] * red[x] + _Y[1] * green[x] + _Y[2] * blue[x] + _LUMA_BIAS) >> 15)


@kernel
def _pair_sums(row: Weights, out: Weights) -> None:
    for i in range(len(out)):
        left = np.uintp(i) * np.uintp(2)
        out[i] = np.int16(row[left] + row[left + np.uintp(1)])


@kernel
def _chroma_row(weights: tuple[int, int, int], red: Weights, green: Weights, blue: Weights, out: Weights) -> None:
    """Chroma of pairs of pixels, with 7 binary places, of which the last is 0."""
    for i in range(len(out)):
        out[i] = (weights[0] * red[i] + weights[1] * green[i] + weights[2] * blue[i] + _CHROMA_BIAS >> 10) << 1


@kernel
def _reduced_row(fine: Weights, rows: npt.NDArray[np.int32], weights: Weights, out: Plane) -> None:
    """One row of chroma of eight. Written out, as a loop over taps would go over the row eight times."""
    a, b, c, d = fine[rows[0]], fine[rows[1]], fine[rows[2]], fine[rows[3]]
    e, f, g, h = fine[rows[4]], fine[rows[5]], fine[rows[6]], fine[rows[7]]
    half = np.int16(64 + (_TAPS - 1) * 8 >> 4)
    for x in range(len(out)):
        near = np.int16(np.int16(_high(d[x], weights[3]) + _high(e[x], weights[4])) + half)
        next_ = np.int16(_high(c[x], weights[2]) + _high(f[x], weights[5]))
        far = np.int16(_high(b[x], weights[1]) + _high(g[x], weights[6]))
        ends = np.int16(_high(a[x], weights[0]) + _high(h[x], weights[7]))
        out[x] = _byte(np.int16(np.int16(np.int16(near + next_) + np.int16(far + ends)) >> np.int16(3)))


@kernel
def _reduced(fine: Weights, rows: npt.NDArray[np.int32], weights: Weights, out: Plane) -> None:
    """Chroma of half as many rows. The last row is summed exactly, the others from truncated products: FFmpeg's
    vector code would write past the end of the last one and leaves it to plain code."""
    last, width = len(rows) - 1, fine.shape[1]
    for i in range(last):
        _reduced_row(fine, rows[i], weights[i], out[i, :width])
    for x in range(width):
        exact = np.int64(64 << 12)
        for k in range(_TAPS):
            exact += np.int64(fine[rows[last, k], x]) * np.int64(weights[last, k])
        out[last, x] = min(max(exact >> 19, np.int64(0)), np.int64(255))


@kernel
def to_420(rgb: Plane, rows: npt.NDArray[np.int32], weights: Weights, y: Plane, u: Plane, v: Plane) -> None:
    """Fill luma (H, W) and chroma (H/2, W/2) from RGB (H, 3 W); `rows` and `weights` are those of `row_taps`.

    Planes are given with the padding of their rows.
    """
    height, width = len(rgb), rgb.shape[1] // 3
    half = width // 2
    red, green, blue = np.empty(width, np.int16), np.empty(width, np.int16), np.empty(width, np.int16)
    reds, greens, blues = np.empty(half, np.int16), np.empty(half, np.int16), np.empty(half, np.int16)
    fine_u, fine_v = np.empty((height, half), np.int16), np.empty((height, half), np.int16)
    for i in range(height):
        _split_row(rgb[i], red, green, blue)
        _luma_row(red, green, blue, y[i, :width])
        _pair_sums(red, reds)
        _pair_sums(green, greens)
        _pair_sums(blue, blues)
        _chroma_row(_U, reds, greens, blues, fine_u[i])
        _chroma_row(_V, reds, greens, blues, fine_v[i])
    _reduced(fine_u, rows, weights, u)
    _reduced(fine_v, rows, weights, v)


# Matrices as numbered in ITU-T H.273: our names, and those of FFmpeg's converter.
_MATRICES = {
    1: ("bt709", Colorspace.ITU709),
    4: ("fcc", Colorspace.FCC),
    5: ("bt601", Colorspace.ITU601),
    6: ("bt601", Colorspace.ITU601),
    7: ("smpte240m", Colorspace.SMPTE240M),
    9: ("bt2020", Colorspace.BT2020),
    10: ("bt2020", Colorspace.BT2020),
}
_UNNAMED = _MATRICES[6]
_HALF_WIDTH_CHROMA = ("yuv420p", "yuvj420p", "yuva420p", "yuv422p", "yuvj422p")
# Without these flags FFmpeg uses shortcuts that differ between processors.
_EXACT = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT


def _rows(plane: VideoPlane) -> Plane:
    """Return the rows of a plane, with their padding."""
    return np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)


class ToRgb:
    """Converts decoded frames of one stream to RGB arrays of one size.

    Args:
        size: (height, width) of the stored frames; a frame of another size, in a stream that changes size,
            is scaled to it.
        rotation: degrees clockwise to turn the result.
    """

    def __init__(self, size: tuple[int, int], rotation: int) -> None:
        self._height, self._width = size
        self._turns = -rotation // 90 % 4
        # One converter for a whole stream: creating one costs as much as a small frame.
        self._converter = VideoReformatter()

    def __call__(self, frame: VideoFrame) -> Frame:
        """Convert a frame to (H, W, 3) RGB, rotated for display."""
        layout = frame.format
        full = frame.color_range == ColorRange.JPEG or layout.name.startswith("yuvj") or layout.is_rgb
        matrix, colorspace = _MATRICES.get(frame.colorspace, _UNNAMED)
        if layout.name in _HALF_WIDTH_CHROMA and self._is_ordinary(frame):
            pixels: Frame = np.empty((self._height, self._width, 3), np.uint8)
            y, u, v = (_rows(plane) for plane in frame.planes[:3])
            covered = 2 if "420" in layout.name else 1
            to_rgb(y, u, v, covered, rgb_weights(matrix, full_range=full), pixels.reshape(self._height, -1))
        else:
            pixels = self._convert(frame, colorspace, ColorRange.JPEG if full else ColorRange.MPEG)
        return np.ascontiguousarray(np.rot90(pixels, self._turns)) if self._turns else pixels

    def _is_ordinary(self, frame: VideoFrame) -> bool:
        same_size = (frame.height, frame.width) == (self._height, self._width)
        return same_size and frame.height % 2 == 0 and all(plane.line_size > 0 for plane in frame.planes)

    def _convert(self, frame: VideoFrame, colorspace: Colorspace, colour_range: ColorRange) -> Frame:
        rgb = self._converter.reformat(
            frame,
            width=self._width,
            height=self._height,
            format="rgb24",
            src_colorspace=colorspace,
            src_color_range=colour_range,
            interpolation=_EXACT,
            threads=1,
        )
        return rgb.to_ndarray().astype(np.uint8, copy=False)


class FromRgb:
    """Converts RGB arrays to frames for an encoder, padded to even sides for 4:2:0.

    Args:
        pixel_format: FFmpeg's name of what the encoder takes.
        narrowest: minimum width of the encoder; narrower pictures are padded.
    """

    def __init__(self, pixel_format: str, *, narrowest: int = 1) -> None:
        self._format = pixel_format
        self._narrowest = narrowest
        self._even = "420" in pixel_format
        self._converter = VideoReformatter()

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the (height, width) of the coded frames for pictures of this size."""
        width = max(width, self._narrowest)
        return (height + height % 2, width + width % 2) if self._even else (height, width)

    def __call__(self, pixels: Frame) -> VideoFrame:
        """Convert pixels to the encoder's format; short or odd sides are padded with their last pixels."""
        height, width = pixels.shape[:2]
        coded = self.size(height, width)
        if coded != (height, width):
            pixels = np.pad(pixels, ((0, coded[0] - height), (0, coded[1] - width), (0, 0)), mode="edge")
        pixels = np.ascontiguousarray(pixels)
        if self._format == "yuv420p":
            return _subsampled_frame(pixels)
        frame = VideoFrame.from_ndarray(pixels, format="rgb24")
        if self._format.startswith(("gbr", "rgb", "bgr")):
            return self._converter.reformat(frame, format=self._format, interpolation=_EXACT, threads=1)
        full = self._format.startswith("yuvj")
        return self._converter.reformat(
            frame,
            format=self._format,
            dst_colorspace=Colorspace.ITU601,
            dst_color_range=ColorRange.JPEG if full else ColorRange.MPEG,
            interpolation=_EXACT,
            threads=1,
        )


def _subsampled_frame(pixels: Frame) -> VideoFrame:
    height, width = pixels.shape[:2]
    frame = VideoFrame(width, height, "yuv420p")
    frame.colorspace, frame.color_range = 6, ColorRange.MPEG
    y, u, v = (_rows(plane) for plane in frame.planes)
    to_420(read_only(pixels).reshape(height, -1), *row_taps(height), y, u, v)
    return frame
