"""Frame sinks: the interface of video files and image folders under construction."""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import cv2

from jostle.core.types.clip import Frame

# The thread count affects x264's output, so it is fixed.
ENCODER_THREADS = 4


class Sink(ABC):
    """Destination of frames, at a temporary path until it is complete."""

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        self.warnings: list[str] = []
        self.has_sound = False

    @abstractmethod
    def write(self, frame: Frame, tick: int) -> None:
        """Write one frame at a tick."""

    @abstractmethod
    def finish(self) -> None:
        """Flush everything, so that the temporary path is complete and on disk."""

    @abstractmethod
    def discard(self) -> None:
        """Remove everything that was written."""


JPEG_QUALITY = 95
_JPEG = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]


class ImageFolder(Sink):
    """Sink that writes images, `00000.png` and so on or given names, and `times.json`.

    `times.json` holds the rate and the time base as fractions, and the tick of every image.

    Args:
        names: file names of the images; .jpg and .jpeg are written as JPEG, others as PNG.
    """

    def __init__(
        self, temporary: Path, *, fps: Fraction, time_base: Fraction, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(temporary)
        self._names = names
        self._fps = fps
        self._time_base = time_base
        self._ticks: list[int] = []
        temporary.mkdir()

    def write(self, frame: Frame, tick: int) -> None:
        """Write one frame as an image."""
        number = len(self._ticks)
        name = f"{number:05d}.png" if self._names is None else self._names[number]
        jpeg = name.lower().endswith((".jpg", ".jpeg"))
        done, data = cv2.imencode(".jpg" if jpeg else ".png", frame[..., ::-1], _JPEG if jpeg else [])
        assert done, "both formats store any 8-bit RGB image"
        self._write(name, data.tobytes())
        self._ticks.append(tick)

    def finish(self) -> None:
        """Write the times of all images."""
        times = {"fps": str(self._fps), "time_base": str(self._time_base), "ticks": self._ticks}
        self._write("times.json", json.dumps(times, indent=1).encode())

    def _write(self, name: str, data: bytes) -> None:
        with open(self.temporary / name, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Remove the folder with all images."""
        shutil.rmtree(self.temporary, ignore_errors=True)
