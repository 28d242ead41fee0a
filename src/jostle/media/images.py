"""A folder of images as a video: frames in the order of their numbers, decoded when they are asked for."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np

from jostle.errors import BadValue, MediaError
from jostle.media.door import Limits, checked_file
from jostle.media.image_header import claimed_size
from jostle.types.clip import Frame, Frames, Times, checked_rate, times_at_rate

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
TIMES = "times.json"  # what `jostle corrupt` puts beside the images it writes
USUAL_FPS = Fraction(30)  # a folder of images does not say how fast it is shown
_DIGITS = re.compile(r"(\d+)")
_MOST_FPS = 1_000_000  # and at least one image in as many seconds
_TIMES_BYTES = 64 << 20  # the times of two million images
_PIXEL_BYTES = 8  # of the file; no format that is read here stores more for each pixel
_HEADER_BYTES = 1 << 20  # thumbnails and colour profiles


class ImageSequence:
    """Frames of a folder of images, all of one size.

    Args:
        folder: where they are.
        limits: what they may claim.

    Attributes:
        names: file names, in the order of the numbers in them.
        fps: as `times.json` says it, else 30.
        pts: (T,) seconds at which they are shown.
    """

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        self._folder = folder
        self._limits = limits or Limits()
        try:
            found = [path.name for path in folder.iterdir() if path.suffix.lower() in ENDINGS]
        except OSError as error:
            raise MediaError(f"{folder}: cannot be read ({error.strerror})") from None
        if not found:
            raise MediaError(f"{folder}: holds no images; they end in {', '.join(ENDINGS)}", fault="F4")
        if len(found) > self._limits.max_frames:
            raise MediaError(f"{folder}: holds more than {self._limits.max_frames} images; split it", fault="F99")
        self.names = tuple(sorted(found, key=_in_order))
        self._places = {name: place for place, name in enumerate(self.names)}
        self.fps = self._rate()
        self.pts: Times = times_at_rate(len(self.names), self.fps)
        self.size: tuple[int, int] = self._image(0).shape[:2]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def end_s(self) -> float:
        """When the last frame stops being shown."""
        return float(self.pts[-1]) + float(1 / self.fps)

    def number_of(self, name: str) -> int:
        """The place of an image.

        Raises:
            MediaError: if it is not there.
        """
        if name not in self._places:
            raise MediaError(f"{self._folder / name}: no such image", fault="F4")
        return self._places[name]

    def block(self, lo: int, hi: int) -> Frames:
        """(hi - lo, H, W, 3) RGB of frames `lo` up to, not including, `hi`."""
        frames = np.empty((hi - lo, *self.size, 3), np.uint8)
        for number in range(lo, hi):
            image = self._image(number)
            if image.shape[:2] != self.size:
                height, width = image.shape[:2]
                raise MediaError(
                    f"{self._folder / self.names[number]}: {width}x{height}, where the first image is "
                    f"{self.size[1]}x{self.size[0]}; the images of a video are of one size"
                )
            frames[number - lo] = image
        return frames

    def _image(self, number: int) -> Frame:
        path = self._folder / self.names[number]
        limit = self._limits.max_pixels
        data = self._content(path, limit * _PIXEL_BYTES + _HEADER_BYTES)
        size = claimed_size(data)
        if size is not None and size[0] * size[1] > limit:
            raise MediaError(
                f"{path}: claims {size[1]}x{size[0]}, more than {limit} pixels; raise JOSTLE_MAX_PIXELS if that is "
                "meant",
                fault="F99",
            )
        try:
            image = None if size is None else cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        except cv2.error:
            image = None
        if image is None:
            raise MediaError(f"{path}: is not an image that can be decoded; get it again", fault="F4")
        return np.asarray(image[..., ::-1], np.uint8)

    def _content(self, path: Path, limit: int) -> bytes:
        name, identity = checked_file(path)
        if identity.size > limit:
            raise MediaError(f"{path}: is larger than {limit} bytes; take it out of the folder", fault="F99")
        try:
            return Path(name).read_bytes()
        except OSError as error:
            raise MediaError(f"{path}: cannot be read ({error.strerror})") from None

    def _rate(self) -> Fraction:
        path = self._folder / TIMES
        if not path.exists():
            return USUAL_FPS
        content = self._content(path, _TIMES_BYTES)
        try:
            fps = checked_rate(json.loads(content)["fps"])
            if not 1 <= fps * _MOST_FPS <= _MOST_FPS**2:
                raise BadValue(f"{fps} frames a second")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise MediaError(
                f"{path}: is damaged: 'fps' is no number between 1/{_MOST_FPS} and {_MOST_FPS}; take the file out, and "
                f"{USUAL_FPS} frames a second are taken",
                fault="F98",
            ) from None
        return fps


def _in_order(name: str) -> tuple[list[tuple[int, str]], str]:
    """Numbers as numbers: 9.jpg before 10.jpg."""
    parts = [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name)]
    return parts, name
