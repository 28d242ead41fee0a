"""From stored pixels to RGB and back, by one stated rule, to the same bytes on every processor.

To RGB: the matrix is the one the frame names (BT.709, BT.601, FCC, SMPTE 240M, BT.2020); a frame that names
none counts as BT.601 whatever its size, and a range that is not named counts as limited. FFmpeg's command
line, PyAV and OpenCV do the same. Deeper samples are reduced to 8 bits, alpha is ignored, grey becomes three equal
channels, PQ and HLG are converted as if they were ordinary video.

Ordinary video, 8 bits with chroma of half the width and an even number of rows, goes through the whole-number loops of
`colour_kernels`: each chroma sample colours the pixels it covers, and every product is cut to 16 bits. Those are the
bytes of FFmpeg's default converter on x86-64; on other processors it gives other ones. All other pixels go
through FFmpeg's converter with exact rounding, by which processors agree.

From RGB: BT.601, limited range. For 4:2:0 neighbouring pixels are averaged and rows reduced by a cubic, again by the
loops and as FFmpeg does by default on x86-64. Readers that ignore colour tags and readers that obey them then agree.
"""

from __future__ import annotations

import numpy as np
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter

from jostle.compiled import fixed
from jostle.media.colour_kernels import Plane, rgb_weights, row_taps, to_420, to_rgb
from jostle.types.clip import Frame

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
# Without these FFmpeg takes short cuts that differ from processor to processor.
_EXACT = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT


def _rows(plane: VideoPlane) -> Plane:
    """The rows of a plane, with the padding that they may carry."""
    return np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)


class ToRgb:
    """Turns decoded frames of one stream into RGB arrays of one size.

    Args:
        size: (height, width) of the stored frames; a frame of another size, in a stream that changes size,
            is scaled to it.
        rotation: degrees clockwise to turn the result.
    """

    def __init__(self, size: tuple[int, int], rotation: int) -> None:
        self._height, self._width = size
        self._turns = -rotation // 90 % 4
        # One converter for a whole stream: making one costs as much as a small frame.
        self._converter = VideoReformatter()

    def __call__(self, frame: VideoFrame) -> Frame:
        """(H, W, 3) RGB as shown."""
        layout = frame.format
        full = frame.color_range == ColorRange.JPEG or layout.name.startswith("yuvj") or layout.is_rgb
        matrix, colorspace = _MATRICES.get(frame.colorspace, _UNNAMED)
        if layout.name in _HALF_WIDTH_CHROMA and self._is_ordinary(frame):
            pixels: Frame = np.empty((self._height, self._width, 3), np.uint8)
            y, u, v = (_rows(plane) for plane in frame.planes[:3])
            covered = 2 if "420" in layout.name else 1
            to_rgb(y, u, v, covered, rgb_weights(matrix, full_range=full), pixels.reshape(self._height, -1))
        else:
            pixels = self._converted(frame, colorspace, ColorRange.JPEG if full else ColorRange.MPEG)
        return np.ascontiguousarray(np.rot90(pixels, self._turns)) if self._turns else pixels

    def _is_ordinary(self, frame: VideoFrame) -> bool:
        same_size = (frame.height, frame.width) == (self._height, self._width)
        return same_size and frame.height % 2 == 0 and all(plane.line_size > 0 for plane in frame.planes)

    def _converted(self, frame: VideoFrame, colorspace: Colorspace, colour_range: ColorRange) -> Frame:
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
    """Turns RGB arrays into frames for an encoder, one pixel larger where 4:2:0 asks for even sides.

    Args:
        pixel_format: FFmpeg's name of what the encoder takes.
        narrowest: least width the encoder can handle; narrower pictures are extended to it.
    """

    def __init__(self, pixel_format: str, *, narrowest: int = 1) -> None:
        self._format = pixel_format
        self._narrowest = narrowest
        self._even = "420" in pixel_format
        self._converter = VideoReformatter()

    def size(self, height: int, width: int) -> tuple[int, int]:
        """(height, width) of the coded frames for pictures of this size."""
        width = max(width, self._narrowest)
        return (height + height % 2, width + width % 2) if self._even else (height, width)

    def __call__(self, pixels: Frame) -> VideoFrame:
        """A frame in the encoder's pixel format; a side that is too short or odd grows by repeating its last pixels."""
        height, width = pixels.shape[:2]
        coded = self.size(height, width)
        if coded != (height, width):
            pixels = np.pad(pixels, ((0, coded[0] - height), (0, coded[1] - width), (0, 0)), mode="edge")
        pixels = np.ascontiguousarray(pixels)
        if self._format == "yuv420p":
            return _reduced(pixels)
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


def _reduced(pixels: Frame) -> VideoFrame:
    height, width = pixels.shape[:2]
    frame = VideoFrame(width, height, "yuv420p")
    frame.colorspace, frame.color_range = 6, ColorRange.MPEG
    y, u, v = (_rows(plane) for plane in frame.planes)
    to_420(fixed(pixels).reshape(height, -1), *row_taps(height), y, u, v)
    return frame
