"""Where written frames go: what a video file in the making and a folder of images have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from jostle.types.clip import Frame

# The thread count changes the bits that x264 writes, so it is the same on every machine.
ENCODER_THREADS = 4


class Sink(ABC):
    """Where frames go: a video file or a folder of images, under a temporary path until it is whole."""

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        self.warnings: list[str] = []
        self.has_sound = False

    @abstractmethod
    def write(self, frame: Frame, tick: int) -> None:
        """Take one frame."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still held back, so that the temporary path is complete and on disk."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what was written."""
