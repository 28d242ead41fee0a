"""Damage as the inspector of jostle finds it, or one of other weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.damage_finder import Indices
from jostle.corruptions.engine.stages import MADE, stretches

if TYPE_CHECKING:
    from jostle.mending.descriptor_layout import Descriptors
    from jostle.mending.frame_facts import FrameFacts
    from jostle.mending.inspection import InspectedVideo, Inspector
    from jostle.mending.video_rules import VideoRules

BLOCK = 64  # frames per read
IN_MEMORY = 4096  # frames whose samples are kept in memory, 28 kB each; of longer videos they are in a temporary file


@dataclass(frozen=True)
class InspectorFinder:
    """Damage finder by an inspector and its rules."""

    inspector: Inspector

    @property
    def name(self) -> str:
        """Name of the inspector in run records."""
        return Path(self.inspector.name).name

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the inspector."""
        return self.inspector.fingerprint

    def finder_for(self, clean: VideoSource, /) -> InspectedFrames:
        """Create the finder of damaged frames for one video."""
        return InspectedFrames(clean, self.inspector)

    def to(self, device: str) -> InspectorFinder:
        """Return a copy with its inspector on another device."""
        return replace(self, inspector=self.inspector.to(device))


class InspectedFrames:
    """Damaged frames as an inspector and rules find them; unchanged frames are processed once for all states.

    Args:
        clean: the video without corruption. Its descriptors are cached, 1,584 bytes a frame, and what the rules know of
            a frame, 33 kB. What its decoder concealed is damage in every state that has the frame.
    """

    def __init__(self, clean: VideoSource, inspector: Inspector) -> None:
        self._clean, self._inspector = clean, inspector
        self._concealed: Mask | None = getattr(clean, "concealed", None)  # of a source that is decoded
        self._video: InspectedVideo | None = None
        self._rules: VideoRules | None = None

    def find_damaged(self, top: VideoSource, came_from: Indices) -> Mask:
        from jostle.mending.inspection import InspectedVideo
        from jostle.mending.video_rules import VideoRules, join_kinds

        if self._video is None:
            descriptors, facts = _describe(self._clean, np.arange(len(self._clean)), rules=self._inspector.rules)
            self._video = InspectedVideo(self._inspector, descriptors)
            self._rules = VideoRules(facts, self._clean.pts, self._concealed) if self._inspector.rules else None
        descriptors, facts = _describe(top, np.flatnonzero(came_from == MADE), rules=self._inspector.rules)
        damaged = self._video.probabilities_for(came_from, descriptors) >= self._inspector.threshold()
        if self._rules is None:
            return np.asarray(damaged)
        concealed = None if self._concealed is None else self._concealed[came_from] & (came_from >= 0)
        return np.asarray(join_kinds(self._rules.kinds_for(came_from, facts), damaged, concealed) != "clean")


def _describe(source: VideoSource, which: Indices, *, rules: bool) -> tuple[Descriptors, list[FrameFacts]]:
    """Compute the descriptors of some frames and, for the rules, their facts, holding few frames in memory at once."""
    from jostle.mending.descriptor import describe_frames
    from jostle.mending.descriptor_layout import CELLS, CHANNELS
    from jostle.mending.frame_facts import frame_facts

    descriptors = np.zeros((len(which), CHANNELS, CELLS, CELLS), np.uint8)
    facts: list[FrameFacts] = []
    samples = _make_samples(len(which) if rules else 0)
    blocks = (source.block(lo, min(lo + BLOCK, b)) for a, b in stretches(which) for lo in range(a, b, BLOCK))
    done = 0
    for block in blocks:
        own = descriptors[done : done + len(block)]
        own[:] = describe_frames(block)
        if rules:
            for number, (frame, descriptor) in enumerate(zip(block, own, strict=True), done):
                facts.append(frame_facts(frame, descriptor, samples[number]))
        done += len(block)
    return descriptors, facts


def _make_samples(count: int) -> npt.NDArray[np.uint8]:
    """Return room for the samples of frames, on disk where they are many."""
    from jostle.mending.frame_facts import SIDE

    shape = (count, SIDE, SIDE, 3)
    if count <= IN_MEMORY:
        return np.empty(shape, np.uint8)
    with TemporaryFile() as file:
        return np.asarray(np.memmap(file, np.uint8, "w+", shape=shape))
