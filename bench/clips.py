"""Frames and videos that benchmarks and reference tests use: real ones where they are available, else generated."""

from __future__ import annotations

import functools
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from jostle.io.video.encode import Writer

Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) RGB

ROOT = Path(__file__).resolve().parent.parent
MEDIA = ROOT.parent / "shared" / "media"
KINETICS = "WUzgd7C1pWA.mp4"  # 340x256, H.264, a clip as the recognition benchmarks store it


@functools.cache
def real_frames(name: str, count: int, height: int, width: int) -> Frames | None:
    """Return the first `count` frames of a real clip at a given size, or None if the clip is not available.

    Frames of another size are scaled to cover the given one and cropped at the centre, which keeps proportions.
    """
    path = MEDIA / name
    if not path.exists():
        return None
    video = cv2.VideoCapture(str(path))
    frames: list[npt.NDArray[np.uint8]] = []
    while len(frames) < count:
        success, frame = video.read()
        if not success:
            break
        frames.append(_scale_and_crop(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), height, width))
    video.release()
    if not frames:
        return None
    clip = np.stack([frames[t % len(frames)] for t in range(count)])
    clip.flags.writeable = False
    return clip


@functools.cache
def drawn_frames(count: int, height: int, width: int, seed: int = 7) -> Frames:
    """Return a generated clip: a coloured gradient, moving discs and a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    slopes = (x * 200 / width + 20, y * 180 / height + 40, (x + y) * 120 / (height + width) + 60)
    background = np.stack(slopes, axis=-1)
    positions = rng.uniform(0, 1, (12, 2))
    speeds = rng.uniform(-0.01, 0.01, (12, 2))
    colours = rng.integers(0, 256, (12, 3))
    clip = np.empty((count, height, width, 3), np.uint8)
    for t in range(count):
        frame = (background + rng.normal(0, 4, background.shape)).clip(0, 255).astype(np.uint8)
        for position, speed, colour in zip(positions, speeds, colours, strict=True):
            centre = ((position + t * speed) % 1 * (width, height)).astype(int)
            cv2.circle(frame, tuple(map(int, centre)), height // 12, tuple(map(int, colour)), -1)
        clip[t] = frame
    clip.flags.writeable = False
    return clip


def frames_for(count: int, height: int, width: int) -> tuple[Frames, str]:
    """Return a clip for timing, real if possible, and a description of its source."""
    real = real_frames(KINETICS, count, height, width)
    if real is not None:
        return real, f"real frames of {KINETICS}"
    return drawn_frames(count, height, width), f"generated frames, because {MEDIA} does not exist"


def write_texture_video(
    path: Path, *, size: tuple[int, int], fps: int, frames: int, block: tuple[int, int], seed: int
) -> None:
    """Write a video of a random texture that drifts, which costs an encoder and a decoder as much as a real one.

    Args:
        size: height and width of a frame; `block` that of a patch of one colour.
    """
    (height, width), (down, across) = size, block
    colours = np.random.default_rng(seed).integers(0, 256, (height // down, width // across, 3))
    texture = colours.repeat(down, 0).repeat(across, 1).astype(np.uint8)
    with Writer(path, size=size, fps=fps) as writer:
        for t in range(frames):
            writer.write(np.roll(texture, (t, 2 * t), (0, 1)), t)


def _scale_and_crop(frame: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    if frame.shape[:2] == (height, width):
        return frame
    scale = max(height / frame.shape[0], width / frame.shape[1])
    size = (max(width, round(frame.shape[1] * scale)), max(height, round(frame.shape[0] * scale)))
    scaled = cv2.resize(frame, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    top, left = (size[1] - height) // 2, (size[0] - width) // 2
    return np.ascontiguousarray(scaled[top : top + height, left : left + width])
