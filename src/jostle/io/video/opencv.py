"""Decoding with OpenCV where PyAV is missing, with less information and slower seeking.

Colours are converted by OpenCV's own copy of FFmpeg: the same pixels on x86-64, up to some grey levels off elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import cv2
import numpy as np

from jostle.core.types.clip import Frame, check_rate
from jostle.errors import MediaError
from jostle.io.video.probe import VideoFacts
from jostle.io.video.timestamps import DecodeScan
from jostle.io.video.validation import Limits, check_kind, missing_tail, printable_name

_NOTE = "decoded by OpenCV because PyAV is not installed; damage and colour tags go unnoticed"


def probe_opencv(path: str, limits: Limits) -> VideoFacts:
    """Return the facts of a file that OpenCV provides."""
    capture = _open_capture(path, limits)
    try:
        return _facts(capture, path)
    finally:
        capture.release()


def _open_capture(path: str, limits: Limits) -> cv2.VideoCapture:
    check_kind(path)
    # An explicit backend prevents that a percent sign in the name is taken for a numbered series of images.
    capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG)
    if not capture.isOpened():
        raise MediaError(f"{printable_name(path)}: no video that OpenCV can open; check that it plays", fault="F2")
    width, height = (int(capture.get(key)) for key in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
    if width * height > limits.max_pixels:
        capture.release()
        raise MediaError(
            f"{printable_name(path)}: claims frames of {width}x{height}, more than {limits.max_pixels} pixels; "
            "raise JOSTLE_MAX_PIXELS if that is intended",
            fault="F9",
        )
    return capture


def _facts(capture: cv2.VideoCapture, path: str) -> VideoFacts:
    rate = capture.get(cv2.CAP_PROP_FPS)
    fps = check_rate(round(rate, 6)) if rate > 0 else Fraction(25)
    declared = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    rotation = int(capture.get(cv2.CAP_PROP_ORIENTATION_META)) % 360
    tag = int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, "little", signed=False)
    return VideoFacts(
        path=path,
        container="unknown",
        codec=tag.decode("ascii", "replace").strip("\0 ").lower(),
        width=int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)),
        height=int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)),
        rotation=rotation,
        fps=fps,
        time_base=1 / fps,
        declared_frames=declared if declared > 0 else None,
        duration_s=float(declared / fps) if declared > 0 else None,
        pixel_format="",
        bit_depth=8,
        sample_aspect=Fraction(1),
        interlaced=None,
        colour_range=None,
        bit_rate=int(capture.get(cv2.CAP_PROP_BITRATE) * 1000) or None,
        audio_codec=None,
        video_streams=1,
        decoder="opencv",
        warnings=(_NOTE,),
    )


class OpencvFrames:
    """Frame source that reads a file from the beginning whenever frames are requested out of order.

    OpenCV's seeking is inexact, so it is not used.
    """

    def __init__(self, path: str, *, limits: Limits) -> None:
        self._path = path
        self._limits = limits
        self.facts = probe_opencv(path, limits)

    def predict_scan(self, least_bytes: int) -> None:
        """Return None: OpenCV gives no access to the index."""

    def scan(self, keep: Callable[[int, Frame], None]) -> DecodeScan:
        """Read the whole file once; `keep` is called with every picture."""
        scan = DecodeScan(single_thread=True)
        times_ms = []
        for number, picture, time_ms in self._read():
            times_ms.append(time_ms)
            keep(number, picture)
            if number > self._limits.max_frames:
                raise MediaError(
                    f"{printable_name(self._path)}: more than {self._limits.max_frames} frames; cut it or raise the "
                    "limit",
                    fault="F10",
                )
        times = np.array(times_ms) / 1000 * float(self.facts.fps)  # in frames, the ticks of this decoder
        grid = np.round(times)
        if len(times) and np.abs(times - grid).max() > 0.05:
            # A variable rate needs a finer clock than one tick a frame.
            self.facts = VideoFacts(**{**self.facts.__dict__, "time_base": Fraction(1, 1_000_000)})
            grid = np.round(np.array(times_ms) * 1000)
        scan.stamps = [int(tick) for tick in grid]
        scan.expected = len(times_ms)
        if missing_tail(self._path) or self.facts.codec in ("avc1", "h264", "hvc1", "hev1"):
            scan.expected = max(scan.expected, self.facts.declared_frames or 0)
        return scan

    def use_scan(self, scan: DecodeScan) -> None:
        """Do nothing: every pass starts at the beginning."""

    def _read(self) -> Iterator[tuple[int, Frame, float]]:
        capture = _open_capture(self._path, self._limits)
        try:
            number = 0
            while True:
                success, picture = capture.read()
                if not success:
                    return
                yield number, np.asarray(picture, np.uint8), capture.get(cv2.CAP_PROP_POS_MSEC)
                number += 1
        finally:
            capture.release()

    def pictures(self, start: int) -> Iterator[tuple[int, Frame]]:
        """Yield (frame number, picture in BGR) from the first frame on."""
        for number, picture, _ in self._read():
            yield number, picture

    def seek_point(self, number: int) -> int:
        """Return 0: every pass starts at the beginning."""
        return 0

    def rgb(self, picture: Frame) -> Frame:
        """Convert a picture to (H, W, 3) RGB."""
        if picture.shape[:2] != (self.facts.height, self.facts.width):
            picture = np.asarray(cv2.resize(picture, (self.facts.width, self.facts.height)), np.uint8)
        return np.ascontiguousarray(picture[..., ::-1])

    @staticmethod
    def weight(picture: Frame) -> int:
        """Return the bytes that caching this picture takes."""
        return int(picture.nbytes)

    def close(self) -> None:
        """Do nothing: no file is open between passes."""
