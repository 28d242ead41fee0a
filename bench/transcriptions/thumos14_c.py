"""THUMOS14-C (Zeng et al., CVPR 2024): corruptions of uint8 frames as in the released extractors.

Its motion blur is that of ImageNet-C at severity 5, for which `bench.peer` is used.
"""

from __future__ import annotations

from random import Random

import cv2
import numpy as np
import numpy.typing as npt

Frame = npt.NDArray[np.uint8]  # (H, W, 3) RGB
Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) RGB

EXPOSURE, BLOCKS = 100, 2000  # of the I3D program; 180 and 1400 in that for VideoMAE
STRIPS = 10
NEIGHBOUR = 30  # frames between the damaged one and those its strips are copied from


def black_frame(frame: Frame) -> Frame:
    """Return a frame of zeros."""
    return np.zeros_like(frame)


def overexposure(frame: Frame) -> Frame:
    """Add a constant to all three channels, saturating; OpenCV adds a scalar to the first only."""
    return cv2.add(frame, (EXPOSURE, EXPOSURE, EXPOSURE, 0))


def hand(width: int = 787, height: int = 442) -> npt.NDArray[np.uint8]:
    """Return a drawing of a dark forearm and hand from the lower left, (height, width, 4) RGBA.

    The published picture must not be redistributed; only its size, position and coverage matter for the cost.
    """
    overlay = np.zeros((height, width, 4), np.uint8)
    colour = (46, 34, 24, 255)
    palm = (int(width * 0.42), int(height * 0.5))
    cv2.line(overlay, (0, height), palm, colour, int(height * 0.24))
    cv2.ellipse(overlay, palm, (int(width * 0.12), int(height * 0.2)), 20, 0, 360, colour, -1)
    for reach, angle in ((0.34, -150), (0.42, -110), (0.46, -85), (0.42, -60), (0.34, -25)):
        tip = (
            int(palm[0] + height * reach * np.cos(np.deg2rad(angle))),
            int(palm[1] + height * reach * np.sin(np.deg2rad(angle))),
        )
        cv2.line(overlay, palm, tip, colour, int(height * 0.07), cv2.LINE_AA)
    return overlay


def occlusion(frame: Frame, overlay: npt.NDArray[np.uint8]) -> Frame:
    """Paste the overlay at the bottom left where its alpha is not zero, and apply a 7x7 median to the frame."""
    height, width = frame.shape[:2]
    scale = min(height / overlay.shape[0], width / overlay.shape[1]) / 1.1
    size = (int(overlay.shape[1] * scale), int(overlay.shape[0] * scale))
    small = cv2.resize(overlay, size, interpolation=cv2.INTER_LINEAR)
    out = frame.copy()
    corner = out[height - size[1] :, : size[0]]
    covered = small[..., 3] != 0
    corner[covered] = small[..., :3][covered]
    return cv2.medianBlur(out, 7)


def packet_loss(frames: Frames, t: int, rng: Random) -> Frame:
    """Return frame `t` with strips of the frames 30 before and after, and smeared blocks, drawn one by one."""
    before = frames[max(0, t - NEIGHBOUR)]
    after = frames[min(len(frames) - 1, t + NEIGHBOUR)]
    out = frames[t].copy()
    height, width = out.shape[:2]
    for _ in range(STRIPS):
        for source in (after, before):
            y, x = rng.randrange(height), rng.randrange(width)
            bottom, right = min(y + y % 15 + 10, height), min(x + x % 50 + 150, width)
            out[y:bottom, x:right] = source[y:bottom, x:right]
    stripped = out.copy()
    for _ in range(BLOCKS):
        x, y = rng.randrange(1, width - 1), rng.randrange(1, height - 1)
        out[y : y + y % 10, x : x + x % 10] = stripped[y, x]
    return out
