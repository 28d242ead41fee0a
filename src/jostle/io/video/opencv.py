"""Decoding by OpenCV, for machines without PyAV: with fewer facts and slower seeking.

Colours are converted by OpenCV's own copy of FFmpeg: the same pixels on x86-64, up to some grey levels off elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import cv2
import numpy as np

from jostle.core.types.clip import Frame, checked_rate
from jostle.errors import MediaError
from jostle.io.video.probe import VideoFacts
from jostle.io.video.timestamps import Survey
from jostle.io.video.validation import Limits, check_kind, missing_tail, shown_name

_NOTE = "decoded by OpenCV because PyAV is not installed; damage and colour tags go unnoticed"


def probe_opencv(path: str, limits: Limits) -> VideoFacts:
    """What OpenCV can tell about a file."""
    capture = _opened(path, limits)
    try:
        return _facts(capture, path)
    finally:
        capture.release()


def _opened(path: str, limits: Limits) -> cv2.VideoCapture:
    check_kind(path)
    # Naming the backend keeps OpenCV from taking a name with a percent sign for a numbered series of images.
    capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG)
    if not capture.isOpened():
        raise MediaError(f"{shown_name(path)}: no video that OpenCV can open; check that it plays", fault="F2")
    width, height = (int(capture.get(key)) for key in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
    if width * height > limits.max_pixels:
        capture.release()
        raise MediaError(
            f"{shown_name(path)}: claims frames of {width}x{height}, more than {limits.max_pixels} pixels; "
            "raise JOSTLE_MAX_PIXELS if that is meant",
            fault="F9",
        )
    return capture


def _facts(capture: cv2.VideoCapture, path: str) -> VideoFacts:
    rate = capture.get(cv2.CAP_PROP_FPS)
    fps = checked_rate(round(rate, 6)) if rate > 0 else Fraction(25)
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


class OpencvPictures:
    """The pictures of a file, read from the beginning each time they are asked for out of order.

    OpenCV lands on inexact frames when it seeks, so it is not asked to.
    """

    def __init__(self, path: str, *, limits: Limits) -> None:
        self._path = path
        self._limits = limits
        self.facts = probe_opencv(path, limits)

    def foretold(self, least_bytes: int) -> None:
        """OpenCV does not show the index."""

    def survey(self, keep: Callable[[int, Frame], None]) -> Survey:
        """Read the whole file once; `keep` is offered every picture."""
        survey = Survey(single_thread=True)
        times_ms = []
        for number, picture, shown_ms in self._read():
            times_ms.append(shown_ms)
            keep(number, picture)
            if number > self._limits.max_frames:
                raise MediaError(
                    f"{shown_name(self._path)}: more than {self._limits.max_frames} frames; cut it or raise the limit",
                    fault="F10",
                )
        times = np.array(times_ms) / 1000 * float(self.facts.fps)  # in frames, the ticks of this decoder
        grid = np.round(times)
        if len(times) and np.abs(times - grid).max() > 0.05:
            # A variable rate needs a finer clock than one tick a frame.
            self.facts = VideoFacts(**{**self.facts.__dict__, "time_base": Fraction(1, 1_000_000)})
            grid = np.round(np.array(times_ms) * 1000)
        survey.stamps = [int(tick) for tick in grid]
        survey.expected = len(times_ms)
        if missing_tail(self._path) or self.facts.codec in ("avc1", "h264", "hvc1", "hev1"):
            survey.expected = max(survey.expected, self.facts.declared_frames or 0)
        return survey

    def adopt(self, survey: Survey) -> None:
        """Nothing to take over: every reading starts at the beginning."""

    def _read(self) -> Iterator[tuple[int, Frame, float]]:
        capture = _opened(self._path, self._limits)
        try:
            number = 0
            while True:
                there, picture = capture.read()
                if not there:
                    return
                yield number, np.asarray(picture, np.uint8), capture.get(cv2.CAP_PROP_POS_MSEC)
                number += 1
        finally:
            capture.release()

    def pictures(self, start: int) -> Iterator[tuple[int, Frame]]:
        """(frame number, picture in BGR) from the first frame on."""
        for number, picture, _ in self._read():
            yield number, picture

    def entry_before(self, number: int) -> int:
        """Always the beginning."""
        return 0

    def rgb(self, picture: Frame) -> Frame:
        """(H, W, 3) RGB as shown."""
        if picture.shape[:2] != (self.facts.height, self.facts.width):
            picture = np.asarray(cv2.resize(picture, (self.facts.width, self.facts.height)), np.uint8)
        return np.ascontiguousarray(picture[..., ::-1])

    @staticmethod
    def weight(picture: Frame) -> int:
        """Bytes that keeping this picture costs."""
        return int(picture.nbytes)

    def close(self) -> None:
        """Nothing is held open between readings."""
