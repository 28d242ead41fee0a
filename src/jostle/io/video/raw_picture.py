"""Uncompressed pictures as bytes: their planes one after another without padding, as y4m and raw video have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange

from jostle.core.types.clip import Frame
from jostle.errors import BadValue, MediaError
from jostle.io.video.colour import ToRgb
from jostle.io.video.validation import Limits

Samples = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]  # flat, of one picture


@dataclass(frozen=True)
class PictureLayout:
    """Size, pixel format (FFmpeg's name) and range of uncompressed pictures."""

    width: int
    height: int
    pixel_format: str
    full_range: bool = False

    @property
    def planes(self) -> tuple[tuple[int, int], ...]:
        """(rows, bytes a row) of each plane, without padding."""
        return _planes(self.width, self.height, self.pixel_format)

    @property
    def nbytes(self) -> int:
        """Number of bytes of one picture."""
        return sum(rows * row for rows, row in self.planes)

    def samples(self, data: bytes | bytearray) -> Samples:
        """Return the samples of a picture, read-only; of more than 8 bits as 16-bit integers."""
        wide = VideoFormat(self.pixel_format).components[0].bits > 8
        samples: Samples = np.frombuffer(data, "<u2" if wide else np.uint8)
        samples.flags.writeable = False
        return samples

    def to_frame(self, samples: Samples) -> VideoFrame:
        """Return the picture as FFmpeg's frame."""
        frame = VideoFrame(self.width, self.height, self.pixel_format)
        frame.color_range = ColorRange.JPEG if self.full_range else ColorRange.MPEG
        data, begin = samples.view(np.uint8), 0
        for plane, (rows, row) in zip(frame.planes, self.planes, strict=True):
            lines = np.frombuffer(memoryview(plane), np.uint8)[: rows * plane.line_size].reshape(rows, plane.line_size)
            lines[:, :row] = data[begin : begin + rows * row].reshape(rows, row)
            begin += rows * row
        return frame

    def from_frame(self, frame: VideoFrame) -> Samples:
        """Return the samples of FFmpeg's frame, which has this layout."""
        data, begin = bytearray(self.nbytes), 0
        out = np.frombuffer(data, np.uint8)
        for plane, (rows, row) in zip(frame.planes, self.planes, strict=True):
            stride = plane.line_size
            if stride < 0:
                raise MediaError("pictures that are stored upside down cannot be passed on as they are", fault="F15")
            lines = np.frombuffer(memoryview(plane), np.uint8)[: rows * stride].reshape(rows, stride)
            out[begin : begin + rows * row].reshape(rows, row)[:] = lines[:, :row]
            begin += rows * row
        return self.samples(data)

    def black(self) -> Samples:
        """Return a black picture of this layout."""
        frame = VideoFrame.from_ndarray(np.zeros((self.height, self.width, 3), np.uint8), format="rgb24")
        to_range = ColorRange.JPEG if self.full_range else ColorRange.MPEG
        return self.from_frame(frame.reformat(format=self.pixel_format, dst_color_range=to_range))


def layout_of(frame: VideoFrame) -> PictureLayout:
    """Return the layout of a decoded frame."""
    full = frame.color_range == ColorRange.JPEG or frame.format.name.startswith("yuvj")
    return PictureLayout(frame.width, frame.height, frame.format.name, full)


def check_layout(layout: PictureLayout, what: str, limits: Limits) -> PictureLayout:
    """Return the layout if pictures of it can be read; `what` names their source in messages."""
    if not 0 < layout.width * layout.height <= limits.max_pixels:
        raise MediaError(
            f"{what}: claims frames of {layout.width}x{layout.height}; from 1 to {limits.max_pixels} pixels are read, "
            "and JOSTLE_MAX_PIXELS changes that",
            fault="F9",
        )
    try:
        _ = layout.planes
    except ValueError as error:
        raise BadValue(f"{what}: {error}; choose another pixel format, such as yuv420p or rgb24") from None
    return layout


@lru_cache(64)
def _planes(width: int, height: int, pixel_format: str) -> tuple[tuple[int, int], ...]:
    own = VideoFormat(pixel_format, width, height)  # a ValueError for an unknown name
    rows: dict[int, int] = {}
    widths: dict[int, int] = {}
    for part in own.components:
        rows[part.plane] = part.height
        widths[part.plane] = widths.get(part.plane, 0) + part.width * (part.bits + 7 >> 3)
    square = VideoFormat(pixel_format, 16, 16)
    known = sum(part.width * part.height * (part.bits + 7 >> 3) for part in square.components)
    if own.has_palette or own.is_bit_stream or known * 8 != square.padded_bits_per_pixel * 256:
        raise ValueError(f"pixels of format {pixel_format} are packed in a way that is not read as raw video")
    return tuple((rows[plane], widths[plane]) for plane in sorted(rows))


@dataclass
class LivePicture:
    """One picture of a stream.

    Attributes:
        frame: as FFmpeg has it.
        layout: of `samples`.
        time: seconds, or None where the stream does not say.
        header: what y4m says of this frame beyond `FRAME`, with its leading space.
        concealed: whether it shows what a decoder concealed.
    """

    frame: VideoFrame
    layout: PictureLayout
    time: float | None = None
    header: bytes = b""
    _samples: Samples | None = field(default=None, repr=False)
    concealed: bool = False

    @property
    def samples(self) -> Samples:
        """Samples of the picture as they came."""
        if self._samples is None:
            self._samples = self.layout.from_frame(self.frame)
        return self._samples


class RgbOfPictures:
    """Converts the pictures of a stream to RGB, each in its own size."""

    def __init__(self) -> None:
        self._size = (0, 0)

    def __call__(self, picture: LivePicture) -> Frame:
        """Return (H, W, 3) RGB."""
        size = (picture.frame.height, picture.frame.width)
        if size != self._size:
            self._size, self._convert = size, ToRgb(size, 0)
        return self._convert(picture.frame)


@dataclass(frozen=True)
class StreamFacts:
    """Facts of a stream that its pictures do not have: rate, aspect ratio of pixels, header of y4m."""

    layout: PictureLayout
    fps: Fraction | None = None
    pixel_aspect: Fraction | None = None
    y4m_header: bytes | None = None  # as it came, without its end
