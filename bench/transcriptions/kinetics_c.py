"""Mini Kinetics-C and Mini SSV2-C (Yi et al., NeurIPS 2021): rain, fog, contrast, temporal blur and frame rate."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

Frame = npt.NDArray[np.uint8]  # (H, W, 3) RGB
Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) RGB
Legacy = np.random.RandomState  # the Mersenne Twister behind `np.random.normal`

RAIN_AREA = (770, 770, 770, 500, 400)  # pixels for each drop
RAIN_LENGTH = (10, 30, 60, 60, 80)
RAIN_CONTRAST = (0.8, 0.8, 0.7, 0.6, 0.5)
CONTRAST = (0.5, 0.4, 0.3, 0.2, 0.1)
FOG = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))
BLUR_REACH = {"kinetics-c": (3, 5, 7, 9, 11), "ssv2-c": (1, 2, 3, 4, 6)}
FRAME_RATE = {"kinetics-c": (20, 16, 12, 9, 6), "ssv2-c": (10, 8, 6, 4, 2)}


def rain(frame: Frame, severity: int, rng: Legacy) -> Frame:
    """Draw random streaks of fixed length on a frame and lower its contrast.

    The random slant only limits where a drop may start: every line runs from (x, y) to (x - 1, y + length).
    """
    height, width = frame.shape[:2]
    length = RAIN_LENGTH[severity - 1]
    slant = rng.randint(-10, 10)
    mask = np.zeros(frame.shape, np.uint8)
    for _ in range(height * width // RAIN_AREA[severity - 1]):
        x = rng.randint(slant, width) if slant < 0 else rng.randint(0, width - slant)
        y = rng.randint(0, height - length)
        cv2.line(mask, (x, y), (x - 1, y + length), (220, 220, 220), 1)
    lit = frame + (mask * (1 - frame / 255.0) * (1 - np.mean(frame) / 255.0)).astype(np.uint8)
    blurred = cv2.blur(lit, (3, 3))
    rained = blurred * (mask / 255.0) + frame * (1 - mask / 255.0)
    means = np.mean(rained, axis=(0, 1), keepdims=True)
    return np.clip((rained - means) * RAIN_CONTRAST[severity - 1] + means, 0, 255).astype(np.uint8)


def contrast(frame: Frame, severity: int) -> Frame:
    """Move each channel of a frame towards its mean."""
    x = frame / 255.0
    means = np.mean(x, axis=(0, 1), keepdims=True)
    return (np.clip((x - means) * CONTRAST[severity - 1] + means, 0, 1) * 255).astype(np.uint8)


def fog(frames: Frames, severity: int, rng: Legacy) -> Frames:
    """Blend one height map into every frame of a video.

    The original crops frames to 224x224 under a map of side 256. Here the frame stays whole and the side of the map is
    the next power of two, so that both sides of a comparison write the same number of pixels.
    """
    thickness, decay = FOG[severity - 1]
    height, width = frames.shape[1:3]
    side = 1 << max(8, (max(height, width) - 1).bit_length())
    veil = thickness * diamond_square(side, decay, rng)[:height, :width, None]
    out = []
    for frame in frames:
        x = frame / 255.0
        brightest = x.max()
        out.append((np.clip((x + veil) * brightest / (brightest + thickness), 0, 1) * 255).astype(np.uint8))
    return np.array(out)


def diamond_square(side: int, decay: float, rng: Legacy) -> npt.NDArray[np.float64]:
    """Return a periodic height map in 0..1, whose `side` is a power of two, by the diamond-square algorithm."""
    grid = np.zeros((side, side))
    step, wobble = side, 100.0

    def jitter(total: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return total / 4 + wobble * rng.uniform(-wobble, wobble, total.shape)

    while step >= 2:
        half = step // 2
        corners = grid[::step, ::step]
        down = corners + np.roll(corners, -1, axis=0)
        grid[half::step, half::step] = jitter(down + np.roll(down, -1, axis=1))
        centres = grid[half::step, half::step]
        across = corners + np.roll(corners, -1, axis=1)
        grid[::step, half::step] = jitter(centres + np.roll(centres, 1, axis=0) + across)
        grid[half::step, ::step] = jitter(centres + np.roll(centres, 1, axis=1) + down)
        step, wobble = half, wobble / decay
    grid -= grid.min()
    return grid / grid.max()


def temporal_blur(frames: Frames, reach: int) -> Frames:
    """Return (T - 2 reach, H, W, 3) means of frames i - reach .. i + reach - 1 for every i that has them all."""
    out = []
    for i in range(reach, len(frames) - reach):
        total = np.zeros(frames.shape[1:], np.float64)
        for j in range(i - reach, i + reach):
            total += frames[j]
        out.append((total / (2 * reach)).astype(np.uint8))
    return np.array(out).reshape(-1, *frames.shape[1:])


def frame_rate(frames: Frames, rate: float, *, fps: float) -> Frames:
    """Lower the frame rate of a clip and keep its length: each frame becomes the last one of the slower grid."""
    return np.array([frames[int(np.ceil(int(t * rate / fps) * fps / rate))] for t in range(len(frames))])


def noisy_bytes(packets: list[bytes], amount: int) -> list[bytes]:
    """Damage the packets of a stream as FFmpeg's `noise` filter does: a running sum selects bytes and values."""
    state, out = 0, []
    for packet in packets:
        data = bytearray(packet)
        for i, byte in enumerate(packet):
            state = (state + byte + 1) % 2**32
            if state % amount == 0:
                data[i] = state % 256
        out.append(bytes(data))
    return out
