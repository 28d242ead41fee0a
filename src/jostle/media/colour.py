"""From stored pixels to RGB and back, by one stated rule.

To RGB: the matrix is the one the frame names (BT.709, BT.601, FCC, SMPTE 240M, BT.2020); a frame that names
none counts as BT.601 whatever its size, and a range that is not named counts as limited. FFmpeg's command
line, PyAV and OpenCV do the same, so pixels equal theirs. Chroma is enlarged as FFmpeg's default converter
does. Deeper samples are reduced to 8 bits, alpha is ignored, grey becomes three equal channels, PQ and HLG
are converted as if they were ordinary video.

From RGB: BT.601, limited range, bicubic chroma reduction, as FFmpeg's command line does by default. Readers
that ignore colour tags and readers that obey them then agree.
"""

from __future__ import annotations

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter

from jostle.types.clip import Frame

# Matrices as numbered in ITU-T H.273, to the names swscale has for them.
_MATRICES = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.ITU601,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
    10: Colorspace.BT2020,
}


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
        rgb = self._converter.reformat(
            frame,
            width=self._width,
            height=self._height,
            format="rgb24",
            src_colorspace=_MATRICES.get(frame.colorspace, Colorspace.ITU601),
            src_color_range=ColorRange.JPEG if full else ColorRange.MPEG,
            interpolation=Interpolation.BICUBIC,
            threads=1,
        )
        pixels: Frame = rgb.to_ndarray().astype(np.uint8, copy=False)
        return np.ascontiguousarray(np.rot90(pixels, self._turns)) if self._turns else pixels


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
        frame = VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
        if self._format.startswith(("gbr", "rgb", "bgr")):
            return self._converter.reformat(frame, format=self._format, threads=1)
        full = self._format.startswith("yuvj")
        return self._converter.reformat(
            frame,
            format=self._format,
            dst_colorspace=Colorspace.ITU601,
            dst_color_range=ColorRange.JPEG if full else ColorRange.MPEG,
            interpolation=Interpolation.BICUBIC,
            threads=1,
        )
