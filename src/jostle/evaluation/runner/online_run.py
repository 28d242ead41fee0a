"""Online adaptation in a run: the order of videos, what has to be computed anew, and states that a run resumes from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.random import rng_for
from jostle.evaluation.inference.adaptation import (
    SOURCE,
    AdaptedFeaturePredictor,
    AdaptedRecognitionPredictor,
    CellState,
    OnlineStates,
    extend_history,
)
from jostle.evaluation.inference.jobs import Predictor
from jostle.evaluation.recipes.recipe import Cell, slugify
from jostle.evaluation.runner.state import Plan, State
from jostle.evaluation.tasks.task import Task

if TYPE_CHECKING:
    from jostle.evaluation.run_folder.folder import RunFolder

SAVE_EVERY_S = 30.0  # seconds; what a killed run loses at most
AdaptedPredictor = AdaptedRecognitionPredictor | AdaptedFeaturePredictor


def is_online(adapt: Mapping[str, Any] | None) -> bool:
    """Whether a network goes on with the state that earlier videos left."""
    return adapt is not None and adapt["protocol"] == "online"


def order_videos(names: Sequence[str], seed: int) -> list[str]:
    """Return videos in the order of an online run, drawn by the seed.

    >>> sorted(order_videos(["a", "b", "c"], 0))
    ['a', 'b', 'c']
    """
    return [names[i] for i in rng_for(seed, "adaptation", "order").permutation(len(names)).tolist()]


class OnlineRun:
    """Plan and states of a run in which the network adapts from video to video.

    Results of a video in a cell are valid only for the history of videos that they were computed after, which the
    journal records: where one video of a cell is computed anew, those after it are too.

    Args:
        order: all videos, in the order of the run.
    """

    def __init__(self, folder: RunFolder, order: Sequence[str]) -> None:
        self._folder, self._order = folder, order
        self._stored: dict[str, CellState] = {}
        self._states: OnlineStates | None = None
        self._saved_at = time.monotonic()

    def plan(self, plan: Plan, state: State, task: Task[Any, Any], seed: int) -> Plan:
        """Return the work that is left in the order of the run; a cell goes on from its last state, or begins anew."""
        names = [name for name in self._order if name not in plan.failed]
        histories = [SOURCE]
        for name in names:
            histories.append(extend_history(histories[-1], name))
        lacking = {(job.name, cell.name) for job in plan.video_jobs for cell in job.cells}
        first: dict[str, int] = {}
        for cell in plan.cells:
            valid = _count_valid(cell, names, histories, lacking, state)
            if valid < len(names):
                first[cell.name] = self._resume_at(cell, histories[: valid + 1])
        jobs = []
        for number, name in enumerate(names):
            cells = tuple(cell for cell in plan.cells if first.get(cell.name, len(names)) <= number)
            if cells:
                jobs.append(task.make_job(name, task.data.videos[name], cells, seed, None))
        there = {name: videos for name, videos in plan.there.items() if name not in first}
        return replace(plan, video_jobs=tuple(jobs), there=there)

    def load(self, load: Callable[[], Predictor[Any]]) -> Predictor[Any]:
        """Load the predictor with the stored states."""
        predictor = load()
        assert isinstance(predictor, AdaptedPredictor)
        predictor.states.states.update(self._stored)
        self._states = predictor.states
        return predictor

    def save(self, *, at_once: bool = False) -> None:
        """Store the states of all cells, if that was long ago or must be done at once."""
        from jostle.models.adaptation.state_files import write_state

        if self._states is None or not (at_once or time.monotonic() > self._saved_at + SAVE_EVERY_S):
            return
        self._folder.adaptation.mkdir(exist_ok=True)
        for cell, state in self._states.states.items():
            write_state(self._path(cell), state.history, state.tensors)
        self._saved_at = time.monotonic()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Store the states if the run stops before its end, and remove them if it does not."""
        try:
            yield
        except BaseException:
            self.save(at_once=True)
            raise
        self.clear()

    def clear(self) -> None:
        """Remove the stored states of a run that is complete."""
        for path in self._folder.adaptation.glob("*.npz"):
            path.unlink()
        with suppress(OSError):
            self._folder.adaptation.rmdir()

    def _resume_at(self, cell: Cell, histories: Sequence[str]) -> int:
        """Return the number of videos that the stored state of a cell has seen, if the run goes through it; else 0."""
        from jostle.models.adaptation.state_files import read_state

        stored = read_state(self._path(cell.name))
        if stored is None or stored[0] not in histories:
            return 0
        self._stored[cell.name] = CellState(*stored)
        return histories.index(stored[0])

    def _path(self, cell: str) -> Path:
        return self._folder.adaptation / f"{slugify(cell)}.npz"


def _count_valid(
    cell: Cell, names: Sequence[str], histories: Sequence[str], lacking: set[tuple[str, str]], state: State
) -> int:
    """Return the number of videos, from the first, with stored results of a cell after the videos before them."""
    for number, name in enumerate(names):
        event = state.videos.get((name, None))
        known = None if event is None else (event.histories or {}).get(cell.name)
        if (name, cell.name) in lacking or known != histories[number]:
            return number
    return len(names)
