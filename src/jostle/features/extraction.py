"""Features of a video in one state, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field

import numpy as np
import numpy.typing as npt

from jostle.core.types.video import VideoSource
from jostle.features.deferred_corruption import DeferredCorruptionFactory
from jostle.features.interpolation import MendingResult
from jostle.models.extractors.protocol import Features

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cost:
    """Amount of computation of an extraction.

    >>> Cost(3, 2, 1) + Cost(1, 1, 1, flows=4)
    Cost(decoded=4, seen=3, joined=2, flows=4)
    """

    decoded: int = 0  # number of decoded frames
    seen: int = 0  # number of frames that the frame part of a network processed
    joined: int = 0  # number of windows for which a feature was computed
    flows: int = 0  # number of frame pairs for which optical flow was computed

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(mine - theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, eq=False)
class Extraction:
    """Features of one video in one state."""

    features: Features  # (T, C) float32, one row a window
    # (N, D) float32 features of single frames; None for a network that processes whole windows.
    seen: Features | None = None
    cost: Cost = field(default_factory=Cost)
    mended: MendingResult | None = None  # outcome of mending; None without mending


@dataclass(eq=False)
class CellExtraction:
    """Extraction of a cell in progress."""

    name: str
    top: VideoSource  # the corrupted video
    came_from: Indices  # for each frame the clean frame that it equals, or `MADE`
    created: Indices  # frames whose features have to be computed
    defer: DeferredCorruptionFactory | None  # the corruption, where the extractor's device applies it
    cost: Cost
    finish: Callable[[], Features] = lambda: np.empty((0, 0), np.float32)  # waits for what was submitted last
    rows: Indices | None = None  # rows of the features that are computed; None while frames are embedded
    frame_features: Features | None = None
    done: Extraction | None = None

    def can_join(self, other: CellExtraction) -> bool:
        """Whether the same clean frames are sent for both cells."""
        return self.defer is not None and other.defer is not None and np.array_equal(self.created, other.created)
