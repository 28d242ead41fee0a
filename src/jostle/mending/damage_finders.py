"""Localization of the damaged frames of a video in each of its states, by an inspector or by ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.core.finite import naming
from jostle.corruptions.engine.stages import MADE, PipelineSource, origins, stretches
from jostle.mending.repair import Mask

if TYPE_CHECKING:
    from jostle.mending.descriptor_layout import Descriptors
    from jostle.mending.inspected_video import InspectedVideo
    from jostle.mending.inspector import Inspector

BLOCK = 64  # frames per read

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mending:
    """Strategy that decides which frames are damaged."""

    # Model that predicts it; None for the oracle, which knows the frames that a corruption changed.
    inspector: Inspector | None = None

    @property
    def name(self) -> str:
        """Name of the strategy in run records."""
        return "known" if self.inspector is None else Path(self.inspector.name).name

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the inspector; None for the oracle."""
        return None if self.inspector is None else self.inspector.fingerprint

    def finder_for(self, clean: PipelineSource) -> KnownFrames | InspectedFrames:
        """Create the finder of damaged frames for one video."""
        return KnownFrames() if self.inspector is None else InspectedFrames(clean, self.inspector)

    def to(self, device: str) -> Mending:
        """Return a copy with its inspector on another device."""
        return self if self.inspector is None else replace(self, inspector=self.inspector.to(device))


class KnownFrames:
    """Oracle that reads damage from the placement: every frame that is not the original of its index."""

    def find_damaged(self, top: PipelineSource, came_from: Indices) -> Mask:
        return np.asarray(came_from != np.arange(len(came_from)))


class InspectedFrames:
    """Damaged frames as an inspector predicts them; unchanged frames are processed once for all states.

    Args:
        clean: the video without corruption. Its descriptors are cached, 1,584 bytes a frame.
    """

    def __init__(self, clean: PipelineSource, inspector: Inspector) -> None:
        self._clean, self._inspector = clean, inspector
        self._video: InspectedVideo | None = None

    def find_damaged(self, top: PipelineSource, came_from: Indices) -> Mask:
        from jostle.mending.inspected_video import InspectedVideo

        if self._video is None:
            self._video = InspectedVideo(self._inspector, _describe(self._clean, np.arange(len(self._clean))))
        probabilities = self._video.probabilities_for(came_from, _describe(top, np.flatnonzero(came_from == MADE)))
        return np.asarray(probabilities >= self._inspector.threshold())


def find_damaged(mending: Mending, clean: PipelineSource, states: Mapping[str, PipelineSource]) -> dict[str, Mask]:
    """Return the mask of damaged frames for each state of a video."""
    finder, masks = mending.finder_for(clean), {}
    for name, top in states.items():
        with naming(cell=name):
            masks[name] = finder.find_damaged(top, origins(top))
    return masks


def _describe(source: PipelineSource, which: Indices) -> Descriptors:
    """Compute the descriptors of some frames, holding few frames in memory at once."""
    from jostle.mending.descriptor import describe_frames

    blocks = (source.block(lo, min(lo + BLOCK, b)) for a, b in stretches(which) for lo in range(a, b, BLOCK))
    return describe_frames(frame for block in blocks for frame in block)
