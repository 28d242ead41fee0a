"""An extractor of a few lines that sees flow: here the difference of two frames, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from helpers.numpy_extractor import DIM, FRAME_DIM, MODULUS, TwoParts, WindowsWhole


@dataclass
class Moving(WindowsWhole):
    """Extractor of frames and motion; `pairs` counts the pairs of frames that it received."""

    sees_flow: bool = True
    pairs: list[int] = field(default_factory=list)

    def flow(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        assert first.shape == second.shape
        self.pairs.append(len(first))
        return (second[:, ::2, ::2, :2] * 3 - first[:, ::2, ::2, :2]).astype(np.uint8)

    def __call__(self, clips: np.ndarray, flow: np.ndarray) -> np.ndarray:
        assert flow.shape[:2] == clips.shape[:2]
        as_frames = np.concatenate([flow, flow[..., :1]], -1)
        seen = [
            TwoParts.see(self, part.reshape(-1, *part.shape[2:])).reshape(len(part), -1, FRAME_DIM)
            for part in (clips, as_frames)
        ]
        made = self.join(seen[0]) + 2 * self.join(seen[1])
        assert made.shape[1] == DIM
        return (made % MODULUS).astype(np.float32)
