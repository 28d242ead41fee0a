"""Detections under many corruptions: each video is decoded once, and features are computed where something changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from jostle.core.types.segments import Segments
from jostle.evaluation.inference.feature_detection import FeatureDetector, Grid, segments_later
from jostle.evaluation.inference.footage import opened
from jostle.evaluation.inference.jobs import Looked, Order
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.engine import VideoFeatures
from jostle.features.frames import KeptFrames
from jostle.features.interpolation import Mended
from jostle.features.result import Cost
from jostle.features.windows import ReleasedFault, Rule
from jostle.mending.damage import Mending
from jostle.models.extractors.protocol import FeatureExtractor

ByDetector = dict[str, Segments]


@dataclass(frozen=True)
class Models:
    """What looks at the videos.

    Attributes:
        extractor: makes features.
        detectors: by name; each looks at the same features.
        guard: a context to work in, such as one that keeps a library to one thread.
        rule, released_faults: see `jostle.features.windows.WindowGrid`.
        mending: by detector, what tells which frames were struck: it looks at features in which what these touch is
            replaced. The others look at features as they are.
    """

    extractor: FeatureExtractor
    detectors: Mapping[str, FeatureDetector]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    rule: Rule = "all"
    released_faults: tuple[ReleasedFault, ...] = ()
    mending: Mapping[str, Mending] = field(default_factory=dict)

    @property
    def groups(self) -> dict[Mending | None, list[str]]:
        """Detectors that look at the same features."""
        made: dict[Mending | None, list[str]] = {}
        for name in self.detectors:
            made.setdefault(self.mending.get(name), []).append(name)
        return made


@dataclass(frozen=True)
class LookedTogether(Looked[ByDetector]):
    """What several detectors found in one video.

    Attributes:
        mended_for: what became of struck frames, by detector and cell; none of those that look at features as they are.
    """

    mended_for: dict[str, dict[str, Mended]] = field(default_factory=dict)

    def of(self, model: str) -> Looked[Segments]:
        """What one of them found."""
        own = {cell: found[model] for cell, found in self.found.items()}
        return Looked(own, self.clean, self.cells, self.source, mended=self.mended_for.get(model))


@dataclass(frozen=True)
class Detecting:
    """Looks at a video with several detectors at once."""

    models: Models

    def __call__(self, order: Order) -> LookedTogether:
        with self.models.guard():
            return _look(order, self.models)


@dataclass(frozen=True)
class Loading:
    """Loads the models where they are to work, and gives what looks at videos with them."""

    load: Callable[[], Models]

    def __call__(self) -> Detecting:
        return Detecting(self.load())


def _look(order: Order, models: Models) -> LookedTogether:
    grid = Grid(models.extractor.spec.stride, models.extractor.spec.frames)
    found: dict[str, ByDetector] = {cell.name: {} for cell in order.cells}
    later: dict[tuple[str, str], Callable[[], Segments]] = {}
    mended: dict[str, dict[str, Mended]] = {}
    clean, others = Cost(), Cost()
    with opened(order) as reader:
        frames, plain = KeptFrames(reader), None
        for mending, names in models.groups.items():
            video = VideoFeatures(
                frames,
                models.extractor,
                rule=models.rule,
                released_faults=models.released_faults,
                seed=order.seed,
                video_id=order.name,
                segments=order.segments,
                path=None if reader.damage else reader.coded_path,
                bit_rate=reader.facts.bit_rate,
                clean=plain,
                finder=mending,
            )
            begun = video.cost
            own = video.clean()
            clean, plain = clean + (video.cost - begun), video.plain()
            for cell in order.cells:
                done = own
                if cell.name != CLEAN:
                    done = video.under(cell.parsed, cell.placement)
                    others += done.cost
                for name in names:
                    features = np.array(done.features)
                    later[cell.name, name] = segments_later(
                        models.detectors[name], features, grid, name=order.name, fps=video.fps, duration=reader.end_s
                    )
                    if done.mended is not None:
                        mended.setdefault(name, {})[cell.name] = done.mended
    for (cell_name, name), finish in later.items():
        found[cell_name][name] = finish()
    return LookedTogether(found, clean, others, mended_for=mended)
