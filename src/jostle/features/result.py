"""Results of feature extraction, and their computational cost."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

from jostle.features.interpolation import MendingResult
from jostle.models.extractors.protocol import Features


@dataclass(frozen=True)
class Cost:
    """Amount of computation of an extraction.

    Attributes:
        decoded: number of decoded frames.
        seen: number of frames that the frame part of a network processed.
        joined: number of windows for which a feature was computed.
        flows: number of frame pairs for which optical flow was computed.

    >>> Cost(3, 2, 1) + Cost(1, 1, 1, flows=4)
    Cost(decoded=4, seen=3, joined=2, flows=4)
    """

    decoded: int = 0
    seen: int = 0
    joined: int = 0
    flows: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(mine - theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, eq=False)
class Extraction:
    """Features of one video in one state.

    Attributes:
        features: (T, C) float32, one row a window.
        seen: (N, D) float32 features of single frames; None for a network that processes whole windows.
        mended: outcome of mending; None without mending.
    """

    features: Features
    seen: Features | None = None
    cost: Cost = field(default_factory=Cost)
    mended: MendingResult | None = None
