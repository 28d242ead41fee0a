"""Detections under many corruptions: each video is decoded once, and features are computed where something changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from jostle.benchmarks.recipe import CLEAN
from jostle.extraction.bridging import Mended
from jostle.extraction.engine import Cost, VideoFeatures
from jostle.extraction.extractor import FeatureExtractor
from jostle.extraction.windows import ReleasedFault, Rule
from jostle.looking.detection import FeatureDetector, Grid, find_segments
from jostle.looking.footage import opened
from jostle.looking.work import Looked, Order
from jostle.mending.finding import Mending
from jostle.types.segments import Segments

ByDetector = dict[str, Segments]


@dataclass(frozen=True)
class Models:
    """What looks at the videos.

    Attributes:
        extractor: makes features.
        detectors: by name; each looks at the same features.
        guard: a context to work in, such as one that keeps a library to one thread.
        rule, released_faults: see `jostle.extraction.windows.WindowGrid`.
        mending: tells which frames were struck, and what these touch is replaced; None to let it be.
    """

    extractor: FeatureExtractor
    detectors: Mapping[str, FeatureDetector]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    rule: Rule = "all"
    released_faults: tuple[ReleasedFault, ...] = ()
    mending: Mending | None = None


@dataclass(frozen=True)
class Detecting:
    """Looks at a video with several detectors at once."""

    models: Models

    def __call__(self, order: Order) -> Looked[ByDetector]:
        with self.models.guard():
            return _look(order, self.models)


@dataclass(frozen=True)
class Loading:
    """Loads the models where they are to work, and gives what looks at videos with them."""

    load: Callable[[], Models]

    def __call__(self) -> Detecting:
        return Detecting(self.load())


def _look(order: Order, models: Models) -> Looked[ByDetector]:
    grid = Grid(models.extractor.spec.stride, models.extractor.spec.frames)
    found: dict[str, ByDetector] = {}
    with opened(order) as reader:
        video = VideoFeatures(
            reader,
            models.extractor,
            rule=models.rule,
            released_faults=models.released_faults,
            seed=order.seed,
            video_id=order.name,
            segments=order.segments,
            path=None if reader.damage else reader.coded_path,
            bit_rate=reader.facts.bit_rate,
            finder=models.mending,
        )
        clean, others = video.clean(), Cost()
        mended: dict[str, Mended] = {}
        for cell in order.cells:
            done = clean
            if cell.name != CLEAN:
                done = video.under(cell.parsed, cell.placement)
                others += done.cost
            if done.mended is not None:
                mended[cell.name] = done.mended
            found[cell.name] = {
                model: find_segments(
                    detector, np.array(done.features), grid, name=order.name, fps=video.fps, duration=reader.end_s
                )
                for model, detector in models.detectors.items()
            }
    return Looked(found, clean.cost, others, mended=None if models.mending is None else mended)
