"""UCF101-P and its siblings (Schiappa et al., CVPR 2023): noise, frame order, rotation and translation.

The published trainer uses a (C, T, H, W) view of a decoded clip, so frames are stacked in that layout here as
well. Where the published programs disagree, a clip keeps its length, including a last group that is short.
"""

from __future__ import annotations

from random import Random

import cv2
import numpy as np
import numpy.typing as npt

Frame = npt.NDArray[np.uint8]  # (H, W, 3) RGB
Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) RGB
Legacy = np.random.RandomState  # the Mersenne Twister behind `np.random.normal`
Planes = npt.NDArray[np.uint8]  # (3, T, H, W) RGB

SHOT = (250, 100, 50, 30, 15)
SPECKLE = (0.15, 0.2, 0.25, 0.3, 0.35)
STRIDE = (2, 4, 8, 16, 32)
STATIC_ANGLE = (7.5, 15, 30, 45, 90)
FREEZE_SHARE = (0.4, 0.2, 0.1, 0.05, 0.0)


def shot_noise(frame: Frame, severity: int, rng: Legacy) -> Frame:
    """Replace each value by a Poisson count of photons."""
    photons = SHOT[severity - 1]
    x = frame / 255.0
    return (np.clip(rng.poisson(x * photons) / float(photons), 0, 1) * 255).astype(np.uint8)


def speckle_noise(frame: Frame, severity: int, rng: Legacy) -> Frame:
    """Add Gaussian noise in proportion to each value."""
    x = frame / 255.0
    noise = rng.normal(size=x.shape, scale=SPECKLE[severity - 1])
    return (np.clip(x + x * noise, 0, 1) * 255).astype(np.uint8)


def sampling_order(n: int, severity: int) -> list[int]:
    """Return the order of every r-th frame, held until the next one."""
    stride = STRIDE[severity - 1]
    return [t // stride * stride for t in range(n)]


def reverse_order(n: int, severity: int) -> list[int]:
    """Return the order of the sampled frames from last to first, each held r times, cut to the clip's length."""
    stride = STRIDE[severity - 1]
    backwards = list(range(0, n, stride))[::-1]
    return [i for i in backwards for _ in range(stride)][:n]


def jumble_order(n: int, severity: int, rng: Random) -> list[int]:
    """Return an order in which frames are shuffled inside consecutive segments of 2^(severity+1)."""
    length = 2 ** (severity + 1)
    order: list[int] = []
    for start in range(0, n, length):
        segment = list(range(start, min(start + length, n)))
        rng.shuffle(segment)
        order += segment
    return order


def box_jumble_order(n: int, severity: int, rng: Random) -> list[int]:
    """Return an order in which segments of 2^severity frames are shuffled."""
    length = 2**severity
    boxes = [list(range(start, min(start + length, n))) for start in range(0, n, length)]
    rng.shuffle(boxes)
    return [i for box in boxes for i in box]


def freeze_order(n: int, severity: int, rng: Random) -> list[int]:
    """Return the order of a few random frames, each held until the next; before the first of them, frame 0 is held."""
    least = 2 if severity == 4 else 1
    picks = set(rng.sample(range(n), min(n, max(int(FREEZE_SHARE[severity - 1] * n), least))))
    order, current = [], 0
    for t in range(n):
        current = t if t in picks else current
        order.append(current)
    return order


def gather(planes: Planes, order: list[int]) -> Planes:
    """Reorder the frames of a channel-major clip, stacked one by one."""
    return np.stack([planes[:, t] for t in order], axis=1)


def hold(frames: Frames, order: list[int]) -> Frames:
    """Reorder or repeat the frames of a list, as they are written to a file."""
    return np.array([frames[t] for t in order])


def rotate(frames: Frames, severity: int, rng: Random) -> Frames:
    """Rotate each frame by a random integer angle, with nearest-neighbour interpolation and black corners."""
    most = 6 * severity + 1
    return np.array([rotate_frame(frame, rng.randint(-most, most)) for frame in frames])


def static_rotate(frames: Frames, severity: int) -> Frames:
    """Rotate every frame by the same angle, counter-clockwise."""
    return np.array([rotate_frame(frame, STATIC_ANGLE[severity - 1]) for frame in frames])


def rotate_frame(frame: Frame, angle: float) -> Frame:
    """Rotate a frame by Pillow."""
    from PIL import Image  # imported here, because the orders above are also tested without Pillow

    return np.array(Image.fromarray(frame).rotate(angle))


def translate(frames: Frames, severity: int, rng: Random) -> Frames:
    """Enlarge each frame and crop it to its own size at a random offset.

    As published: short side scaled to 256, crop 224 at an offset in [0, 8 severity - 1]. For a frame of
    another size the crop is 224/256 of the enlarged frame, which makes the result as large as the input.
    """
    height, width = frames.shape[1:3]
    larger = (round(width * 256 / 224), round(height * 256 / 224))
    out = []
    for frame in frames:
        i, j = rng.randint(0, 8 * severity - 1), rng.randint(0, 8 * severity - 1)
        scaled = cv2.resize(frame, larger, interpolation=cv2.INTER_LINEAR)
        i, j = min(i, larger[1] - height), min(j, larger[0] - width)
        out.append(scaled[i : i + height, j : j + width])
    return np.array(out)
