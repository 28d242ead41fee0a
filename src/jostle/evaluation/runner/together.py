"""Runs of several detectors on the features of one extractor."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from jostle.core.types.segments import Segments
from jostle.datasets.dataset import Dataset
from jostle.errors import JostleError, ResourceError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import ByDetector, DetectorGroup, MultiDetectorResult
from jostle.evaluation.inference.jobs import JobEngine, JobResult, WorkerFactory
from jostle.evaluation.recipes.recipe import Cell, Recipe
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark
from jostle.parallel.workers import map_unordered


def run_together(
    recipe: Recipe,
    data: Dataset,
    models: Mapping[str, BenchmarkModel],
    load: Callable[[], DetectorGroup],
    folders: Mapping[str, Path],
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Run]:
    """Run a benchmark on detectors that share an extractor: one run folder each, every video processed once.

    The folders are the same as if each detector had run alone. Segments of the other detectors are kept in memory,
    which is little.

    Args:
        models: benchmark model of each detector, by its name in `load`.
        load: factory of the detectors, called once per process.
        folders: run folders, by the same names.
        progress: called with the videos done and in all in the first folder; the others then follow at once.
    """
    shared = _SharedResults(load)
    return {
        name: run_benchmark(
            recipe,
            data,
            model,
            folders[name],
            cells=cells,
            seed=seed,
            jobs=jobs,
            engine=shared.engine_for(name),
            progress=progress if number == 0 else None,
        )
        for number, (name, model) in enumerate(models.items())
    }


class _SharedResults:
    """Engines of several runs that share their results."""

    def __init__(self, load: Callable[[], DetectorGroup]) -> None:
        self._factory = WorkerFactory(load)
        self._results: dict[tuple[str, tuple[Cell, ...], bool], JobResult[ByDetector]] = {}

    def engine_for(self, model: str) -> JobEngine:
        """Return the engine of one detector's run."""

        def engine(
            start: Callable[[], Callable[[Any], Any]],
            items: Sequence[Any],
            jobs: int,
            /,
            *,
            lost: Callable[[Any, ResourceError], Any] | None = None,
        ) -> Generator[tuple[Any, Any], None, None]:
            left = [job for job in items if (job.name, job.cells, job.reuse) not in self._results]
            for job in items:
                if (key := (job.name, job.cells, job.reuse)) in self._results:
                    yield job, _select_detector(self._results[key], model)
            with closing(map_unordered(self._factory, left, jobs, lost=lost)) as results:
                for job, result in results:
                    self._results[job.name, job.cells, job.reuse] = result
                    yield job, _select_detector(result, model)

        return engine


def _select_detector(result: JobResult[ByDetector], model: str) -> JobResult[Segments]:
    if isinstance(result, JostleError):
        return result
    assert isinstance(result, MultiDetectorResult)
    return result.of(model)
