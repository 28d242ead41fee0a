"""What an extraction gives: the features of a video in one state, and what was computed for them."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

from jostle.features.interpolation import Mended
from jostle.models.extractors.protocol import Features


@dataclass(frozen=True)
class Cost:
    """What was computed.

    Attributes:
        decoded: frames taken from the video.
        seen: frames that went through the part of a network that sees frames.
        joined: windows of which a feature was made.
        flows: pairs of frames between which optical flow was computed.

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
        seen: (N, D) float32, what was seen of each frame; None for a network that sees windows whole.
        mended: what became of struck frames; None where they are let be.
    """

    features: Features
    seen: Features | None = None
    cost: Cost = field(default_factory=Cost)
    mended: Mended | None = None
