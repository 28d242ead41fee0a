"""Detections under many corruptions: each video is decoded once, and features are computed where something changed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle.benchmarks.recipe import CLEAN, Cell, Recipe
from jostle.datasets.dataset import Dataset
from jostle.errors import JostleError, ResourceError
from jostle.evaluation.detection import FeatureDetector, Grid, find_segments
from jostle.evaluation.runner import Contestant, Run, run_benchmark
from jostle.evaluation.work import Attempting, Engine, Looked, Order, Result
from jostle.extraction.engine import Cost, VideoFeatures
from jostle.extraction.extractor import FeatureExtractor
from jostle.extraction.windows import ReleasedFault, Rule
from jostle.media.decode import Reader
from jostle.types.segments import Segments
from jostle.workers import worked

ByDetector = dict[str, Segments]


@dataclass(frozen=True)
class Models:
    """What looks at the videos.

    Attributes:
        extractor: makes features.
        detectors: by name; each looks at the same features.
        guard: a context to work in, such as one that keeps a library to one thread.
        rule, released_faults: see `jostle.extraction.windows.WindowGrid`.
    """

    extractor: FeatureExtractor
    detectors: Mapping[str, FeatureDetector]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    rule: Rule = "all"
    released_faults: tuple[ReleasedFault, ...] = ()


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


def run_together(
    recipe: Recipe,
    data: Dataset,
    contestants: Mapping[str, Contestant],
    load: Callable[[], Models],
    folders: Mapping[str, Path],
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Run]:
    """Run a benchmark on detectors that share an extractor: each has a run folder, and videos are looked at once.

    The folders end up as if each detector had been run alone. What is found for the others waits in memory, which for
    segments is little.

    Args:
        contestants: what each detector is known by, by the names that `load` gives them.
        load: gives the models, in every process once.
        folders: of the runs, by the same names.
        progress: told of videos, in the first folder; the others then follow at once.
    """
    shared = _Shared(load)
    return {
        name: run_benchmark(
            recipe,
            data,
            contestant,
            folders[name],
            cells=cells,
            seed=seed,
            jobs=jobs,
            engine=shared.engine_for(name),
            progress=progress if number == 0 else None,
        )
        for number, (name, contestant) in enumerate(contestants.items())
    }


class _Shared:
    """An engine for each of several runs, which remember what they found for one another."""

    def __init__(self, load: Callable[[], Models]) -> None:
        self._attempting = Attempting(Loading(load))
        self._kept: dict[tuple[str, tuple[Cell, ...]], Result[ByDetector]] = {}

    def engine_for(self, model: str) -> Engine:
        """What shares out the work of one detector's run."""

        def engine(
            start: Callable[[], Callable[[Any], Any]],
            items: Sequence[Any],
            jobs: int,
            /,
            *,
            lost: Callable[[Any, ResourceError], Any] | None = None,
        ) -> Generator[tuple[Any, Any], None, None]:
            left = [order for order in items if (order.name, order.cells) not in self._kept]
            for order in items:
                if (order.name, order.cells) in self._kept:
                    yield order, _part(self._kept[order.name, order.cells], model)
            with closing(worked(self._attempting, left, jobs, lost=lost)) as results:
                for order, result in results:
                    self._kept[order.name, order.cells] = result
                    yield order, _part(result, model)

        return engine


def _part(result: Result[ByDetector], model: str) -> Result[Segments]:
    if isinstance(result, JostleError):
        return result
    return Looked({cell: found[model] for cell, found in result.found.items()}, result.clean, result.cells)


def _look(order: Order, models: Models) -> Looked[ByDetector]:
    grid = Grid(models.extractor.spec.stride, models.extractor.spec.frames)
    found: dict[str, ByDetector] = {}
    with Reader(order.path, threads=1) as reader:
        video = VideoFeatures(
            reader,
            models.extractor,
            rule=models.rule,
            released_faults=models.released_faults,
            seed=order.seed,
            video_id=order.name,
            segments=order.segments,
            path=None if reader.damage else order.path,
            bit_rate=reader.facts.bit_rate,
        )
        clean, others = video.clean(), Cost()
        for cell in order.cells:
            done = clean
            if cell.name != CLEAN:
                done = video.under(cell.parsed, cell.placement)
                others += done.cost
            found[cell.name] = {
                model: find_segments(
                    detector, np.array(done.features), grid, name=order.name, fps=video.fps, duration=reader.end_s
                )
                for model, detector in models.detectors.items()
            }
    return Looked(found, clean.cost, others)
