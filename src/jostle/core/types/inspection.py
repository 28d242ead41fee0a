"""What an inspector says of a video: which frames were struck."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frame, Times


@dataclass(frozen=True, eq=False)
class Inspection:
    """What was said of a video.

    Attributes:
        probabilities: (T,) that each frame was struck.
        threshold: the one from which a frame counts as struck.
        pts: (T,) when each frame is shown, in seconds.
        fps: frames a second.
        causal: whether only the past was looked at.
        inspector: its name, and `fingerprint` what it is known by.
        small: small copies of some of the frames, evenly spread, for drawings.
    """

    probabilities: npt.NDArray[np.float64]
    threshold: float
    pts: Times
    fps: Fraction
    causal: bool
    inspector: str
    fingerprint: str
    small: tuple[Frame, ...] = ()

    @property
    def struck(self) -> npt.NDArray[np.bool_]:
        """(T,) which frames count as struck."""
        return self.probabilities >= self.threshold

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """First frame and the one after the last of each stretch that was struck."""
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.struck.astype(np.int8), [0]])))
        return [(int(lo), int(hi)) for lo, hi in edges.reshape(-1, 2)]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        end = self.pts + float(1 / self.fps)
        return {
            "format": 1,
            "frames": len(self.probabilities),
            "struck": int(self.struck.sum()),
            "threshold": self.threshold,
            "causal": self.causal,
            "inspector": self.inspector,
            "fingerprint": self.fingerprint,
            "stretches": [
                {
                    "first": lo,
                    "stop": hi,
                    "start_s": float(self.pts[lo]),
                    "end_s": float(end[hi - 1]),
                    "probability": float(self.probabilities[lo:hi].mean()),
                }
                for lo, hi in self.stretches
            ],
            "probabilities": self.probabilities.tolist(),
        }
