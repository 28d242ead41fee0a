"""A film with texture, motion and noise, for the rules of a stream."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

import cv2
import numpy as np

from jostle.core.types.clip import Frames

if TYPE_CHECKING:
    from jostle.mending.stream import VideoStream
    from jostle.mending.verdicts import Verdict

SIDE = 96  # rows of the film


def moving_film(count: int, *, seed: int = 0, noise: float = 2.0, step: float = 2.0) -> Frames:
    """Return a textured scene before a camera that pans."""
    rng = np.random.default_rng(seed)
    coarse, fine = (cv2.GaussianBlur(rng.normal(0, 1, (SIDE, 640, 3)), (0, 0), sigma) for sigma in (14, 1))
    wide = np.clip(110 + 40 * coarse / coarse.std() + 12 * fine / fine.std(), 10, 230)
    frames = [wide[:, int(step * t) % 500 : int(step * t) % 500 + 128] for t in range(count)]
    return np.clip(np.stack(frames) + rng.normal(0, noise, (count, SIDE, 128, 3)), 0, 255).astype(np.uint8)


def textured_film(frames: int, size: tuple[int, int] = (36, 50)) -> Frames:
    """Return a moving texture of changing brightness."""
    rng = np.random.default_rng(frames)
    ground = rng.integers(0, 256, (*size, 3), np.uint8)
    return np.stack([np.roll(ground, t, axis=1) // (1 + t % 3) for t in range(frames)])


def verdicts_on(stream: VideoStream, frames: Iterable[np.ndarray], concealed: Container[int] = ()) -> list[Verdict]:
    """Return the verdicts on a whole stream, some of whose frames the decoder concealed."""
    pictures = [one for t, frame in enumerate(frames) for one in stream.push(frame, concealed=t in concealed)]
    return [one.verdict for one in pictures + stream.flush()]
