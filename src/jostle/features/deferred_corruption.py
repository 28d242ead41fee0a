"""Corruption deferred to the device of the network: frames travel clean, together with what is to be done to them.

A GPU produces the same bytes as a CPU core, in a tenth to a hundredth of the time for most corruptions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.stages import PipelineSource

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DeferredCorruption:
    """Corruption to apply to some frames of a video before a network sees them.

    Attributes:
        spec: the spec as text; empty for none.
        numbers: of the frames in their video, (N,), or of clips (B, T).
        times: timestamps in seconds.
        affected: mask of the frames that the corruption changes.
        kind: the same for all, so that frames with different corruptions share a batch.
    """

    spec: str = ""
    seed: int = 0
    video_id: str = ""
    fps: Fraction = Fraction(30)
    numbers: Any = ()
    times: Any = ()
    affected: Any = ()
    kind: ClassVar[str] = "strike"

    @classmethod
    def on(
        cls, spec: str, video: PipelineSource, mask: Mask, seed: int, name: str, numbers: Indices
    ) -> DeferredCorruption:
        """Create the corruption of the frames with these indices, where the video's mask selects them."""
        return cls(spec, seed, name, video.fps, numbers, video.pts[numbers], mask[numbers])


NO_CORRUPTION = DeferredCorruption()
DeferredCorruptionFactory = Callable[[Indices], DeferredCorruption]  # from frame indices to the corruption of a cell
