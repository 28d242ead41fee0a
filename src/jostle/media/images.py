"""A folder of images as a video: frames in the order of their numbers, decoded when they are asked for."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np

from jostle.errors import MediaError
from jostle.types.clip import Frame, Frames, Times, times_at_rate

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
TIMES = "times.json"  # what `jostle corrupt` puts beside the images it writes
USUAL_FPS = Fraction(30)  # a folder of images does not say how fast it is shown
_DIGITS = re.compile(r"(\d+)")


class ImageSequence:
    """Frames of a folder of images, all of one size.

    Attributes:
        names: file names, in the order of the numbers in them.
        fps: as `times.json` says it, else 30.
        pts: (T,) seconds at which they are shown.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            found = [path.name for path in folder.iterdir() if path.suffix.lower() in ENDINGS]
        except OSError as error:
            raise MediaError(f"{folder}: cannot be read ({error.strerror})") from None
        if not found:
            raise MediaError(f"{folder}: holds no images; they end in {', '.join(ENDINGS)}", fault="F4")
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
        try:
            data = np.frombuffer(path.read_bytes(), np.uint8)
        except OSError as error:
            raise MediaError(f"{path}: cannot be read ({error.strerror})") from None
        image = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
        if image is None:
            raise MediaError(f"{path}: is not an image that can be decoded; get it again", fault="F4")
        return np.asarray(image[..., ::-1], np.uint8)

    def _rate(self) -> Fraction:
        path = self._folder / TIMES
        if not path.is_file():
            return USUAL_FPS
        try:
            return Fraction(json.loads(path.read_text(encoding="utf-8"))["fps"])
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
            raise MediaError(f"{path}: is damaged; take it out, and {USUAL_FPS} frames a second are taken") from None


def _in_order(name: str) -> tuple[list[tuple[int, str]], str]:
    """Numbers as numbers: 9.jpg before 10.jpg."""
    parts = [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(name)]
    return parts, name
