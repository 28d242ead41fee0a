"""What looks at a video for one detector of a run: through features, or at the frames themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.benchmarks.recipe import CLEAN
from jostle.corrupting.stages import Source, origins
from jostle.errors import DataError
from jostle.extraction.engine import Cost
from jostle.extraction.extractor import FeatureExtractor
from jostle.extraction.windows import ReleasedFault, Rule
from jostle.looking.clip_detection import ClipDetector, VideoClips
from jostle.looking.detection import FeatureDetector, checked_segments
from jostle.looking.footage import footage_of
from jostle.looking.sweep import Detecting, Models
from jostle.looking.work import Looked, Order, asked
from jostle.types.segments import Segments

MOST_BYTES = 8 * 2**30  # of the frames of a video, all of which such a model is handed at once


@dataclass(frozen=True)
class DetectingByFeatures:
    """Looks at a video through an extractor; features are computed where a cell changed something.

    Attributes:
        rule, released_faults: see `jostle.extraction.windows.WindowGrid`.
    """

    extractor: FeatureExtractor
    detector: FeatureDetector
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    rule: Rule = "all"
    released_faults: tuple[ReleasedFault, ...] = ()

    def __call__(self, order: Order) -> Looked[Segments]:
        models = Models(self.extractor, {"": self.detector}, self.guard, self.rule, self.released_faults)
        looked = Detecting(models)(order)
        return Looked({cell: found[""] for cell, found in looked.found.items()}, looked.clean, looked.cells)


@dataclass(frozen=True)
class DetectingByClips:
    """Looks at a video with a detector of frames; clips are looked at anew where a cell changed something."""

    detector: ClipDetector
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, order: Order) -> Looked[Segments]:
        with self.guard(), footage_of(order) as footage:
            video = VideoClips(footage.clean, self.detector, duration=footage.end_s)
            states = {cell.name: footage.under(cell) for cell in order.cells}
            made = asked(order.name, lambda: video.found(states), "detector")
            once = min(footage.decoded, len(footage.clean))
            clean, others = Cost(once), Cost(footage.decoded - once)
        return Looked(made.segments, clean + made.clean, others + made.others)


@dataclass(frozen=True)
class DetectingByFrames:
    """Looks at a video with a callable from (T, H, W, 3) uint8 frames to scored Segments, in seconds.

    It may also take `fps`, `duration` and `pts`, by name.
    """

    model: Callable[..., Any]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, order: Order) -> Looked[Segments]:
        found: dict[str, Segments] = {}
        with self.guard(), footage_of(order) as footage:
            facts = {"fps": float(footage.clean.fps), "duration": footage.end_s, "pts": footage.clean.pts}
            clean, looks = Cost(), 0
            untouched: Segments | None = None
            for cell in order.cells:
                top = footage.under(cell)
                whole = bool((origins(top) == np.arange(len(top))).all())
                if whole and untouched is not None:
                    found[cell.name] = untouched
                    continue
                found[cell.name] = self._found(order.name, top, facts)
                looks += 1
                if whole:
                    untouched = found[cell.name]
                if cell.name == CLEAN:
                    clean = Cost(footage.decoded, len(top), 1)
            length = len(footage.clean)
            others = Cost(footage.decoded - clean.decoded, looks * length - clean.seen, looks - clean.joined)
        return Looked(found, clean, others)

    def _found(self, name: str, top: Source, facts: dict[str, Any]) -> Segments:
        size = len(top) * top.size[0] * top.size[1] * 3
        if size > MOST_BYTES:
            raise DataError(
                f"video {name}: its {len(top)} frames are too many to be handed over at once ({size / 2**30:.1f} GiB); "
                "give the model an extractor, and it gets features"
            )
        frames = np.array(top.block(0, len(top)))  # a model that writes into its input would spoil the next cell's
        return asked(name, lambda: checked_segments(accepting(self.model, facts)(frames)))


@dataclass(frozen=True)
class CalledDetector:
    """A callable from (T, C) features to scored Segments; it may also take `fps`, `duration`, `stride`, `window`."""

    model: Callable[..., Any]

    def detect(
        self,
        features: npt.ArrayLike,
        *,
        fps: float,
        duration: float,
        stride: float = 4,
        window: float = 16,
        video_scores: npt.ArrayLike | None = None,
    ) -> Segments:
        """What the callable finds."""
        facts = {"fps": fps, "duration": duration, "stride": stride, "window": window}
        found: Segments = accepting(self.model, facts)(features)
        return found


def accepting(function: Callable[..., Any], facts: dict[str, Any]) -> Callable[[Any], Any]:
    """The function of one argument, given those of the facts by name that it has arguments for.

    >>> accepting(lambda frames, fps: (frames, fps), {"fps": 25.0, "duration": 2.0})("frames")
    ('frames', 25.0)
    """
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some compiled functions do not say
        return function
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known):
        taken = set(facts)
    else:
        taken = {one.name for one in list(known)[1:] if one.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return lambda first: function(first, **{name: value for name, value in facts.items() if name in taken})
