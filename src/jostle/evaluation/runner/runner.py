"""Benchmark runner; a run folder can be resumed after the process is killed.

Videos are the items. The predictions for one, in all cells it lacks, are stored in a file of their own and a line of
the journal; when all are done, each cell's predictions are merged in the order of the annotations. Hence the result
depends neither on the order of work, nor on the number of workers, nor on interruptions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from jostle.core.environment import library_versions
from jostle.datasets.dataset import Dataset
from jostle.errors import DataError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.jobs import JobEngine
from jostle.evaluation.recipes.recipe import Cell, Recipe
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import Event, journal_of, read_events
from jostle.evaluation.run_folder.metadata import FORMAT, About, Content, ModelFacts, RunFacts, TreatmentFacts
from jostle.evaluation.runner.online_run import is_online, order_videos
from jostle.evaluation.runner.plugins import find_plugins
from jostle.evaluation.runner.progress import Watch
from jostle.evaluation.runner.session import Progress, Session, StoppingRule
from jostle.evaluation.runner.state import RESULTS, Plan, State, plan_work, usable_videos
from jostle.evaluation.tasks.task import Task, make_task
from jostle.io.files.atomic import disk_error, write_text
from jostle.io.files.ledger import Ledger
from jostle.io.files.lock import FolderLock
from jostle.io.files.video_ids import file_name_for, refuse_collisions
from jostle.parallel.workers import map_unordered


def run_benchmark(
    recipe: Recipe,
    data: Dataset,
    model: BenchmarkModel,
    out: Path,
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    jobs: int = 1,
    engine: JobEngine = map_unordered,
    retry_failed: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
    stopping: StoppingRule | None = None,
) -> Run:
    """Run a benchmark in a folder, or resume it there.

    Args:
        cells: cells to run; results of other cells in the folder are kept, and scored with them.
        retry_failed: process videos again that could not be used.
        progress: called with the videos done and in all, or portions of videos where results are stored by portions.
        stopping: decides the order of videos, and when the run ends; None for all videos.

    Raises:
        SourceChanged: if the folder holds a run of something else.
        ResourceError: if the disk is full; finished results are kept.
        DataError: if none of the videos could be used.
    """
    task = make_task(recipe, data)
    folder, facts = RunFolder(out, task.suffix), _facts(task, model, seed)
    refuse_collisions([file_name_for(name, RESULTS) for name in data.videos], str(out))
    with FolderLock(out), _open_journal(folder, facts, task) as journal:
        session = Session(
            folder, task, model, facts, journal, cells=cells, retry_failed=retry_failed, watch=watch, stopping=stopping
        )
        session.process(engine, jobs, progress)
        return session.finish()


def plan_benchmark(
    recipe: Recipe,
    data: Dataset,
    model: BenchmarkModel,
    out: Path,
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    retry_failed: bool = False,
) -> Plan:
    """Return what `run_benchmark` would do, without writing anything."""
    task = make_task(recipe, data)
    folder = RunFolder(out, task.suffix)
    folder.check(_facts(task, model, seed), library_versions())
    state = State.of(read_events(folder.journal))
    return plan_work(folder, state, task, cells, seed=seed, retry_failed=retry_failed)


def _facts(task: Task[Any, Any], model: BenchmarkModel, seed: int) -> RunFacts:
    recipe, data = task.recipe, task.data
    own = {one.name: getattr(model, one.name) for group in (TreatmentFacts, ModelFacts) for one in fields(group)}
    if model.adapt is not None:
        order = order_videos(list(usable_videos(task)), seed) if is_online(model.adapt) else None
        own["adapt"] = model.adapt | {"order": order}
    return RunFacts(
        benchmark=recipe.name,
        fingerprint=recipe.fingerprint,
        content=Content.of(recipe.content()),
        seed=seed,
        dataset=data.name,
        subset=data.subset,
        truth=task.fingerprint,
        missing=tuple(data.missing),
        recipe=recipe.base or recipe.name,
        parts=find_plugins(recipe, data.name, model.requested, model.finder),
        **own,
    )


def _open_journal(folder: RunFolder, facts: RunFacts, task: Task[Any, Any]) -> Ledger[Event]:
    """Return the journal of a run folder, and initialise the folder if it is new."""
    try:
        if not folder.check(facts, library_versions()):
            if any(not path.name.startswith(".") and path != folder.frames for path in folder.path.iterdir()):
                raise DataError(f"{folder.path}: contains files that are not a run; name a new or an empty folder")
            own = {field.name: getattr(facts, field.name) for field in fields(facts)}
            about = About(
                **own, videos=len(task.videos), classes=tuple(task.classes), versions=library_versions(), format=FORMAT
            )
            write_text(folder.about, [json.dumps(about.to_dict(), indent=1), "\n"])
        if not folder.truth.exists():
            task.write_truth(folder.truth)
        for inner in (folder.predictions, folder.videos):
            inner.mkdir(exist_ok=True)
    except OSError as error:
        raise disk_error(error, folder.path, "used", "name another folder") from None
    return journal_of(folder.journal)
