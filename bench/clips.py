"""The frames everything here is measured and compared on: real ones where the shared clips are at hand."""

from __future__ import annotations

import functools
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) RGB

ROOT = Path(__file__).resolve().parent.parent
MEDIA = ROOT.parent / "shared" / "media"
KINETICS = "WUzgd7C1pWA.mp4"  # 340x256, H.264, a clip as the recognition benchmarks store it


@functools.cache
def real_frames(name: str, count: int, height: int, width: int) -> Frames | None:
    """The first `count` frames of a shared clip at the size asked for, or None where the clip is not at hand.

    Frames of another size are scaled to cover the wanted one and cut from the middle, so shapes in them stay
    true.
    """
    path = MEDIA / name
    if not path.exists():
        return None
    video = cv2.VideoCapture(str(path))
    frames: list[npt.NDArray[np.uint8]] = []
    while len(frames) < count:
        read, frame = video.read()
        if not read:
            break
        frames.append(_covered(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), height, width))
    video.release()
    if not frames:
        return None
    clip = np.stack([frames[t % len(frames)] for t in range(count)])
    clip.flags.writeable = False
    return clip


@functools.cache
def drawn_frames(count: int, height: int, width: int, seed: int = 7) -> Frames:
    """A generated clip: a coloured gradient, discs that move, a little grain."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    slopes = (x * 200 / width + 20, y * 180 / height + 40, (x + y) * 120 / (height + width) + 60)
    ground = np.stack(slopes, axis=-1)
    places = rng.uniform(0, 1, (12, 2))
    speeds = rng.uniform(-0.01, 0.01, (12, 2))
    colours = rng.integers(0, 256, (12, 3))
    clip = np.empty((count, height, width, 3), np.uint8)
    for t in range(count):
        frame = (ground + rng.normal(0, 4, ground.shape)).clip(0, 255).astype(np.uint8)
        for place, speed, colour in zip(places, speeds, colours, strict=True):
            centre = ((place + t * speed) % 1 * (width, height)).astype(int)
            cv2.circle(frame, tuple(map(int, centre)), height // 12, tuple(map(int, colour)), -1)
        clip[t] = frame
    clip.flags.writeable = False
    return clip


def frames_for(count: int, height: int, width: int) -> tuple[Frames, str]:
    """A clip for timing and one phrase that says where it came from."""
    real = real_frames(KINETICS, count, height, width)
    if real is not None:
        return real, f"real frames of {KINETICS}"
    return drawn_frames(count, height, width), f"generated frames, because {MEDIA} is not there"


def _covered(frame: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    if frame.shape[:2] == (height, width):
        return frame
    scale = max(height / frame.shape[0], width / frame.shape[1])
    size = (max(width, round(frame.shape[1] * scale)), max(height, round(frame.shape[0] * scale)))
    scaled = cv2.resize(frame, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    top, left = (size[1] - height) // 2, (size[0] - width) // 2
    return np.ascontiguousarray(scaled[top : top + height, left : left + width])
