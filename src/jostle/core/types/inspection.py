"""Result of inspecting a video: the probability that each frame is corrupted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frame, Times


@dataclass(frozen=True, eq=False)
class Inspection:
    """Result of inspecting a video.

    Attributes:
        probabilities: (T,) probability that each frame is corrupted.
        threshold: probability from which a frame counts as corrupted.
        pts: (T,) presentation times in seconds.
        fps: frames per second.
        causal: whether only past frames were used.
        inspector: name of the inspector.
        fingerprint: of the inspector's weights.
        kinds: (T,) kind of damage of each frame: `clean` where there is none, `unknown` where no rule names it.
        small: thumbnails of some frames, evenly spread, for figures.
        concealed: number of frames that show what the decoder concealed.
        undecodable: number of frames that the file promises and the decoder did not give.
    """

    probabilities: npt.NDArray[np.float64]
    threshold: float
    pts: Times
    fps: Fraction
    causal: bool
    inspector: str
    fingerprint: str
    kinds: npt.NDArray[np.str_]
    small: tuple[Frame, ...] = ()
    concealed: int = 0
    undecodable: int = 0

    @property
    def struck(self) -> npt.NDArray[np.bool_]:
        """(T,) flags of the frames that count as corrupted."""
        return self.probabilities >= self.threshold

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """First frame and end (exclusive) of each run of corrupted frames."""
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.struck.astype(np.int8), [0]])))
        return [(int(lo), int(hi)) for lo, hi in edges.reshape(-1, 2)]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        end = self.pts + float(1 / self.fps)
        return {
            "format": 1,
            "frames": len(self.probabilities),
            "struck": int(self.struck.sum()),
            "concealed": self.concealed,
            "undecodable": self.undecodable,
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
                    "kind": Counter(self.kinds[lo:hi].tolist()).most_common(1)[0][0],
                    "probability": float(self.probabilities[lo:hi].mean()),
                }
                for lo, hi in self.stretches
            ],
            "probabilities": self.probabilities.tolist(),
        }
