"""Which frames of a video were struck, in every state that it is looked at in: an inspector tells, or it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.corruptions.engine.stages import MADE, Source, origins, stretches
from jostle.mending.repair import Mask

if TYPE_CHECKING:
    from jostle.mending.descriptor import Glances
    from jostle.mending.inspected_video import InspectedVideo
    from jostle.mending.inspector import Inspector

BLOCK = 64  # frames asked for together

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mending:
    """How it is told which frames were struck.

    Attributes:
        inspector: tells; None if the frames that a corruption changed are known, which only a study can have.
    """

    inspector: Inspector | None = None

    @property
    def name(self) -> str:
        """What it is called in records."""
        return "known" if self.inspector is None else Path(self.inspector.name).name

    @property
    def fingerprint(self) -> str | None:
        """Of the inspector; None where the frames are known."""
        return None if self.inspector is None else self.inspector.fingerprint

    def of(self, clean: Source) -> KnownFrames | InspectedFrames:
        """What tells it of one video."""
        return KnownFrames() if self.inspector is None else InspectedFrames(clean, self.inspector)

    def on(self, device: str) -> Mending:
        """The same with its inspector elsewhere."""
        return self if self.inspector is None else replace(self, inspector=self.inspector.to(device))


class KnownFrames:
    """Told by the placement itself: struck is what is not the untouched frame of its place."""

    def struck(self, top: Source, came_from: Indices) -> Mask:
        return np.asarray(came_from != np.arange(len(came_from)))


class InspectedFrames:
    """Told by an inspector, which looks at each untouched frame once and at what changed in every other state.

    Args:
        clean: the video as it is. Its glances are kept, 1,584 bytes a frame.
    """

    def __init__(self, clean: Source, inspector: Inspector) -> None:
        self._clean, self._inspector = clean, inspector
        self._video: InspectedVideo | None = None

    def struck(self, top: Source, came_from: Indices) -> Mask:
        from jostle.mending.inspected_video import InspectedVideo

        if self._video is None:
            self._video = InspectedVideo(self._inspector, _glances(self._clean, np.arange(len(self._clean))))
        told = self._video.under(came_from, _glances(top, np.flatnonzero(came_from == MADE)))
        return np.asarray(told >= self._inspector.threshold())


def struck_in(mending: Mending, clean: Source, states: Mapping[str, Source]) -> dict[str, Mask]:
    """Which frames of a video were struck in each of its states."""
    finding = mending.of(clean)
    return {name: finding.struck(top, origins(top)) for name, top in states.items()}


def _glances(source: Source, which: Indices) -> Glances:
    """Glances at these frames, few of which are held at once."""
    from jostle.mending.descriptor import glances

    every = (source.block(lo, min(lo + BLOCK, b)) for a, b in stretches(which) for lo in range(a, b, BLOCK))
    return glances(frame for block in every for frame in block)
