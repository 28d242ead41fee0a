"""What looks at a video for one detector of a run: through features, or at the frames themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.segments import Segments
from jostle.corruptions.engine.stages import MADE, Source, origins
from jostle.errors import DataError
from jostle.evaluation.inference.clip_detection import ClipDetector, VideoClips
from jostle.evaluation.inference.feature_detection import FeatureDetector, checked_segments
from jostle.evaluation.inference.footage import footage_of
from jostle.evaluation.inference.jobs import Looked, Order, asked
from jostle.evaluation.inference.sweep import Detecting, Models
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.interpolation import Mended, nearest_sound
from jostle.features.result import Cost
from jostle.features.windows import ReleasedFault, Rule
from jostle.mending.damage import Mending, struck_in
from jostle.models.extractors.protocol import FeatureExtractor

Indices = npt.NDArray[np.int64]

MOST_BYTES = 8 * 2**30  # of the frames of a video, all of which such a model is handed at once


@dataclass(frozen=True)
class DetectingByFeatures:
    """Looks at a video through an extractor; features are computed where a cell changed something.

    Attributes:
        rule, released_faults: see `jostle.features.windows.WindowGrid`.
        mending: tells which frames were struck, and what these touch is replaced; None to let it be.
    """

    extractor: FeatureExtractor
    detector: FeatureDetector
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    rule: Rule = "all"
    released_faults: tuple[ReleasedFault, ...] = ()
    mending: Mending | None = None

    def __call__(self, order: Order) -> Looked[Segments]:
        windows = (self.rule, self.released_faults)
        mending = {} if self.mending is None else {"": self.mending}
        return Detecting(Models(self.extractor, {"": self.detector}, self.guard, *windows, mending))(order).of("")


@dataclass(frozen=True)
class DetectingByClips:
    """Looks at a video with a detector of frames; clips are looked at anew where a cell changed something.

    Attributes:
        mending: tells which frames were struck; in their clips, what was seen around them stands in.
    """

    detector: ClipDetector
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: Mending | None = None

    def __call__(self, order: Order) -> Looked[Segments]:
        with self.guard(), footage_of(order) as footage:
            video = VideoClips(footage.clean, self.detector, duration=footage.end_s)
            states = {cell.name: footage.under(cell) for cell in order.cells}
            struck = None if self.mending is None else struck_in(self.mending, footage.clean, states)
            made = asked(order.name, lambda: video.found(states, struck), "detector")
            once = min(footage.decoded, len(footage.clean))
            clean, others = Cost(once), Cost(footage.decoded - once)
        mended = None if struck is None else {name: Mended(struck[name], name in made.left) for name in states}
        return Looked(made.segments, clean + made.clean, others + made.others, mended=mended)


@dataclass(frozen=True)
class DetectingByFrames:
    """Looks at a video with a callable from (T, H, W, 3) uint8 frames to scored Segments, in seconds.

    It may also take `fps`, `duration` and `pts`, by name.

    Attributes:
        mending: tells which frames were struck; the nearest sound ones are shown instead.
    """

    model: Callable[..., Any]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: Mending | None = None

    def __call__(self, order: Order) -> Looked[Segments]:
        found: dict[str, Segments] = {}
        with self.guard(), footage_of(order) as footage:
            facts = {"fps": float(footage.clean.fps), "duration": footage.end_s, "pts": footage.clean.pts}
            clean, looks = Cost(), 0
            known: dict[bytes, Segments] = {}
            states = {cell.name: footage.under(cell) for cell in order.cells}
            struck = None if self.mending is None else struck_in(self.mending, footage.clean, states)
            for cell in order.cells:
                top = states[cell.name]
                shown = np.arange(len(top)) if struck is None else nearest_sound(struck[cell.name])
                came_from = origins(top)[shown]
                key = came_from.tobytes()
                if key in known and (came_from != MADE).all():
                    found[cell.name] = known[key]
                    continue
                found[cell.name] = known[key] = self._found(order.name, top, shown, facts)
                looks += 1
                if cell.name == CLEAN:
                    clean = Cost(footage.decoded, len(top), 1)
            length = len(footage.clean)
            others = Cost(footage.decoded - clean.decoded, looks * length - clean.seen, looks - clean.joined)
        mended = None if struck is None else {name: Mended(one, bool(one.all())) for name, one in struck.items()}
        return Looked(found, clean, others, mended=mended)

    def _found(self, name: str, top: Source, shown: Indices, facts: dict[str, Any]) -> Segments:
        size = len(top) * top.size[0] * top.size[1] * 3
        if size > MOST_BYTES:
            raise DataError(
                f"video {name}: its {len(top)} frames are too many to be handed over at once ({size / 2**30:.1f} GiB); "
                "give the model an extractor, and it gets features"
            )
        frames = top.block(0, len(top))[shown]  # a copy: a model that writes into its input would spoil the next cell's
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
