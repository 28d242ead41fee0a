"""Detectors that share an extractor, run together: each has a run folder, and every video is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from jostle.core.types.segments import Segments
from jostle.datasets.dataset import Dataset
from jostle.errors import JostleError, ResourceError
from jostle.evaluation.inference.jobs import Attempting, Engine, Result
from jostle.evaluation.inference.sweep import ByDetector, Loading, LookedTogether, Models
from jostle.evaluation.recipes.recipe import Cell, Recipe
from jostle.evaluation.runner.runner import Contestant, Run, run_benchmark
from jostle.parallel.workers import worked


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
    assert isinstance(result, LookedTogether)
    return result.of(model)
