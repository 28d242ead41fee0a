"""Extractors of a few lines: whole numbers throughout, so that equal frames give equal bits and unequal ones do not."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from jostle.core.types import Segments
from jostle.io.video.encode import Writer

DIM, FRAME_DIM = 3, 2
MODULUS = 2**20 - 3


@dataclass
class TwoParts:
    """Sees each frame by itself, then joins a window, where the first frame weighs otherwise than the last."""

    window: int = 16
    stride: int = 4
    fps: float | None = None
    delay_s: float = 0.0
    batches: list[int] = field(default_factory=list)

    @property
    def spec(self) -> SimpleNamespace:
        return SimpleNamespace(frames=self.window, stride=self.stride, fps=self.fps)

    @property
    def kind(self) -> SimpleNamespace:
        return SimpleNamespace(name=type(self).__name__)

    @property
    def dim(self) -> int:
        return DIM

    @property
    def frame_dim(self) -> int | None:
        return FRAME_DIM

    def see(self, frames: np.ndarray) -> np.ndarray:
        assert frames.dtype == np.uint8
        assert frames.ndim == 4
        time.sleep(self.delay_s)
        self.batches.append(len(frames))
        flat = frames.reshape(len(frames), -1).astype(np.float64)  # sums stay whole below 2^53
        place = np.arange(flat.shape[1])
        weights = np.stack([place * 7919 % 1009 + 1, place * 104729 % 2003 + 1], 1)
        return (flat @ weights.astype(np.float64) % MODULUS).astype(np.float32)

    def join(self, seen: np.ndarray) -> np.ndarray:
        assert seen.shape[1:] == (self.window, FRAME_DIM)
        order = (np.arange(self.window) + 1)[:, None] * np.array([31, 57])
        summed = (seen.astype(np.int64) * order).sum(1)  # (B, 2)
        return (np.stack([summed[:, 0], summed[:, 1], summed.sum(1)], 1) % MODULUS).astype(np.float32)

    def __call__(self, clips: np.ndarray) -> np.ndarray:
        return self.join(TwoParts.see(self, clips.reshape(-1, *clips.shape[2:])).reshape(len(clips), -1, FRAME_DIM))


@dataclass
class WindowsWhole(TwoParts):
    """The same numbers from windows seen whole."""

    @property
    def frame_dim(self) -> int | None:
        return None

    def see(self, frames: np.ndarray) -> np.ndarray:
        raise AssertionError("this extractor sees windows only")


def moving(frames: int, height: int = 24, width: int = 32, seed: int = 0) -> np.ndarray:
    """Frames no two of which are alike."""
    rng = np.random.default_rng(seed)
    ground = rng.integers(30, 220, (height, width + frames, 3), dtype=np.uint8)
    return np.stack([ground[:, t : t + width] for t in range(frames)])


def write_video(path: Path, frames: int = 60, *, seed: int = 0, fps: int = 25) -> Path:
    """A lossless video of such frames."""
    pictures = moving(frames, 48, 64, seed)
    with Writer(path, size=(48, 64), fps=fps, codec="ffv1") as writer:
        for tick, frame in enumerate(pictures):
            writer.write(frame, tick)
    return path


class SumDetector:
    """Detector of one segment a video, scored by the sum of its features; `calls` holds the facts that it was given."""

    def __init__(self, sign: float = 1.0) -> None:
        self.sign, self.calls = sign, list[dict[str, Any]]()

    def detect(self, features: np.ndarray, **facts: Any) -> Segments:
        self.calls.append(facts)
        return Segments([0.0], [facts["duration"]], [0], [self.sign * float(features.sum())], ("action",))
