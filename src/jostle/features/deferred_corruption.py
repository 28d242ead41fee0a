"""Frames that are struck where the network is: they travel as they are, and with them goes what is to be done to them.

A GPU makes the bytes that a core would, in a tenth to a hundredth of the time for most corruptions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.stages import Source

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Strike:
    """What is done to some frames of a video before a network sees them.

    Attributes:
        spec: as it is written; empty for nothing.
        numbers: of the frames in their video, (N,), or of clips (B, T).
        times: when they are shown, in seconds.
        struck: which of them the corruption strikes.
        kind: what all have in common: frames are looked at together whatever is done to each.
    """

    spec: str = ""
    seed: int = 0
    video_id: str = ""
    fps: Fraction = Fraction(30)
    numbers: Any = ()
    times: Any = ()
    struck: Any = ()
    kind: ClassVar[str] = "strike"

    @classmethod
    def on(cls, spec: str, video: Source, mask: Mask, seed: int, name: str, numbers: Indices) -> Strike:
        """On frames of these numbers, where the mask of the video's frames says so."""
        return cls(spec, seed, name, video.fps, numbers, video.pts[numbers], mask[numbers])


UNTOUCHED = Strike()
Striking = Callable[[Indices], Strike]  # what a cell does to frames of these numbers
