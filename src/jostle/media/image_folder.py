"""A video as numbered PNG images with their times beside them: lossless, exact and readable by anything."""

from __future__ import annotations

import json
import os
import shutil
from fractions import Fraction
from pathlib import Path

import cv2

from jostle.media.sink import Sink
from jostle.types.clip import Frame


class ImageFolder(Sink):
    """Writes `00000.png`, `00001.png`, ... and `times.json`.

    `times.json` holds the rate and the time base as fractions, and the tick of every image.
    """

    def __init__(self, temporary: Path, *, fps: Fraction, time_base: Fraction) -> None:
        super().__init__(temporary)
        self._fps = fps
        self._time_base = time_base
        self._ticks: list[int] = []
        temporary.mkdir()

    def write(self, frame: Frame, tick: int) -> None:
        """Take one frame."""
        done, png = cv2.imencode(".png", frame[..., ::-1])
        assert done, "PNG holds any 8-bit RGB image"
        self._put(f"{len(self._ticks):05d}.png", png.tobytes())
        self._ticks.append(tick)

    def finish(self) -> None:
        """Write the times."""
        times = {"fps": str(self._fps), "time_base": str(self._time_base), "ticks": self._ticks}
        self._put("times.json", json.dumps(times, indent=1).encode())

    def _put(self, name: str, data: bytes) -> None:
        with open(self.temporary / name, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.temporary, ignore_errors=True)
