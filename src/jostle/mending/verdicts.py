"""Verdict on one frame of a stream: damaged or not, with which confidence, and by which kind of damage."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.core.types.clip import Frame

KINDS = (
    "clean",
    "black",
    "one_colour",
    "frozen",
    "covered",
    "blurred",
    "noisy",
    "blocky",
    "overexposed",
    "underexposed",
    "colour_cast",
    "missing_part",
    "out_of_order",
    "unknown",
)
UNDECODABLE = "undecodable"  # kind of what a stream lost: there is no frame, and no verdict


@dataclass(frozen=True, eq=False, slots=True)
class Verdict:
    """Decision on one frame of a stream.

    Attributes:
        index: number of the frame in the stream, from 0.
        time: time of the frame in seconds.
        damaged: whether the frame counts as damaged.
        confidence: share of such decisions that were right on footage with known damage, from 0 to 1.
        kind: one of `KINDS`; "clean" exactly where the frame is not damaged.
        frame: picture to show in its place, or None where the caller asked for verdicts only.
    """

    index: int
    time: float
    damaged: bool
    confidence: float
    kind: str
    frame: Frame | None = None
