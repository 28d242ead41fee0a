"""An extractor of a few lines that sees flow, the difference of two frames; and what each extractor should give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from helpers.numpy_extractor import DIM, FRAME_DIM, MODULUS, TwoParts, WindowsWhole
from jostle import Clip
from jostle.core.types.video import ClipSource
from jostle.features.video import VideoFeatures


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


def make_features(frames: np.ndarray, extractor: TwoParts, **options: Any) -> VideoFeatures:
    """Return features of a video of 25 frames a second."""
    return VideoFeatures(ClipSource(Clip.at_rate(frames, 25)), extractor, video_id="v", **options)


def extract_windows(frames: np.ndarray, extractor: TwoParts) -> np.ndarray:
    """Extract every window separately, with the flow to the next frame; the last frame repeats the flow before it."""
    n, window, stride = len(frames), extractor.window, extractor.stride
    count = max((n - window) // stride + 1, 1)
    rows = [[min(i * stride + k, n - 1) for k in range(window)] for i in range(count)]
    clips = np.stack([frames[row] for row in rows])
    if not isinstance(extractor, Moving):
        return extractor(clips)
    last = max(n - 2, 0)
    flow = extractor.flow(frames[: last + 1], frames[[min(t + 1, n - 1) for t in range(last + 1)]])
    return extractor(clips, np.stack([flow[[min(t, last) for t in row]] for row in rows]))
