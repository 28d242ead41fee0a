"""Benchmark runner; a run folder can be resumed after the process is killed.

Videos are the items. The predictions for one, in all cells it lacks, are stored in a file of their own and a line of
the journal; when all are done, each cell's predictions are merged in the order of the annotations. Hence the result
depends neither on the order of work, nor on the number of workers, nor on interruptions.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from jostle.core.environment import library_versions
from jostle.core.types.segments import Segments
from jostle.datasets.dataset import Dataset
from jostle.errors import DataError, JostleError, ResourceError, SourceChanged
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import ByDetector, DetectorGroup, MultiDetectorResult
from jostle.evaluation.inference.jobs import (
    JobEngine,
    JobResult,
    VideoJob,
    VideoResult,
    WorkerFactory,
)
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import (
    CellWritten,
    DamagedFrames,
    Event,
    VideoFailed,
    VideoKept,
    VideoList,
    event_to_dict,
    journal_of,
    read_events,
)
from jostle.evaluation.run_folder.metadata import (
    FORMAT,
    About,
    Content,
    ModelFacts,
    RunFacts,
    StoppedEarly,
    TreatmentFacts,
    format_adaptation,
)
from jostle.evaluation.run_folder.scores import summarize_scores
from jostle.evaluation.runner.online_run import OnlineRun, is_online, order_videos
from jostle.evaluation.runner.plugins import find_plugins
from jostle.evaluation.runner.progress import ProgressTracker, Watch, WorkTimer
from jostle.evaluation.runner.reuse import check_reuse, update_about
from jostle.evaluation.runner.source_statistics import FILE as STATISTICS
from jostle.evaluation.runner.state import (
    RESULTS,
    Plan,
    State,
    load_complete_results,
    load_results,
    order_for_workers,
    plan_work,
    results_file,
    to_ranges,
    usable_videos,
    write_results,
)
from jostle.evaluation.tasks.task import Task, make_task
from jostle.features.extraction import Cost
from jostle.io.files.atomic import disk_error, write_bytes, write_text
from jostle.io.files.ledger import Ledger
from jostle.io.files.lock import FolderLock
from jostle.io.files.video_ids import file_name_for, refuse_collisions
from jostle.io.video.source import file_fingerprint, source_state
from jostle.parallel.workers import map_unordered

Progress = Callable[[int, int], None]
Note = Callable[[Event], None]
CELLS_AT_ONCE = 8  # merged in one pass over the files of videos; more are faster and take more memory


class StoppingRule(Protocol):
    """Rule that ends a run before all videos are processed."""

    @property
    def order(self) -> Sequence[str]:
        """All videos, in the order to process them in."""

    @property
    def decided(self) -> bool:
        """Whether the run may stop."""

    @property
    def due(self) -> bool:
        """Whether it has to read the predictions for the videos so far before it can decide."""

    def add(self, name: str, scores: Mapping[str, float | None] | None) -> None:
        """Take the scores of a video by finished cell, None if it could not be used."""

    def read(self, folder: Path) -> None:
        """Read predictions and scores of all videos that were added from the run folder."""

    def to_record(self) -> StoppedEarly:
        """Return why the run stopped."""


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
        if model.source_statistics is not None and not (out / STATISTICS).exists():
            write_bytes(out / STATISTICS, [model.source_statistics])
        for path in folder.leftovers():
            with contextlib.suppress(OSError):
                path.unlink()
        state, tracker = State.of(journal.read()), ProgressTracker(task, watch)
        on_kept = None if watch is None else tracker.add_result
        plan = plan_work(folder, state, task, cells, seed=seed, retry_failed=retry_failed, on_kept=on_kept)
        online = None if not is_online(model.adapt) else OnlineRun(folder, (facts.adapt or {})["order"])
        if online is not None:
            plan = online.plan(plan, state, task, seed)
        spent, adaptation = [Cost(), Cost()], None
        tracker.unit = "videos" if all(job.portion is None for job in plan.video_jobs) else "portions of videos"

        def note(event: Event) -> None:
            journal.add(event)
            state.add(event)

        def write_scores(names: list[str]) -> dict[str, Any]:
            _write_predictions(folder, state, plan, task, names, note)
            values = {cell.name: task.measure(folder.predictions_of(cell.slug), names) for cell in plan.cells}
            coverage, adapted = task.coverage(names), format_adaptation(model.adapt)
            scores = summarize_scores(recipe, model.model, plan.cells, values, coverage, model.mend, adapted)
            write_text(folder.scores, [json.dumps(scores, indent=1), "\n"])
            return scores

        def may_stop(stopping: StoppingRule, added: Sequence[str]) -> bool:
            for name in added:
                stopping.add(name, _video_scores(folder, state, task, name))
            if stopping.due:
                write_scores(_finished_videos(folder, state, plan, task))
                stopping.read(out)
            return stopping.decided

        factory = WorkerFactory(model.load if online is None else partial(online.load, model.load))
        jobs_left = order_for_workers(plan.video_jobs) if jobs > 1 and online is None else plan.video_jobs
        if stopping is not None:
            left = {job.name for job in plan.video_jobs}
            stop = may_stop(stopping, [name for name in usable_videos(task) if name not in left])
            place = {name: i for i, name in enumerate(stopping.order)}
            jobs_left = () if stop else tuple(sorted(plan.video_jobs, key=lambda job: place[job.name]))
        timer = WorkTimer(max(min(jobs, len(plan.video_jobs)), 1), model.apart)
        with (
            nullcontext() if online is None else online.saving(),
            closing(
                check_reuse(folder, engine, factory, jobs_left, jobs, model.adapt, stopping is not None)
            ) as results,
        ):
            for done, (job, result) in enumerate(results, 1):
                if isinstance(result, JostleError):
                    _record_failure(job, result, note)
                    tracker.failed += 1
                else:
                    with timer.writing():
                        _store_results(folder, state, task, job, result, note)
                    timer.add(result.spent, by_caller=result.by_caller)
                    spent = [spent[0] + result.clean, spent[1] + result.cells]
                    if result.adaptation is not None:
                        adaptation = result.adaptation + adaptation
                    if online is not None:
                        online.save()
                    tracker.add_result(job.name, result.outputs)
                if progress is not None:
                    progress(done, len(plan.video_jobs))
                tracker.update(done, len(plan.video_jobs), timer.limit)
                if stopping is not None and may_stop(stopping, [job.name]):
                    break
        if (work := timer.to_event()) is not None:
            note(work)
        failures = _write_failures(folder, state, task)
        names = [name for name in usable_videos(task) if name not in state.failed]
        early = None
        if stopping is not None and stopping.decided:
            complete = _finished_videos(folder, state, plan, task)
            early, names = stopping.to_record() if len(complete) < len(names) else None, complete
        update_about(folder, stopped_early=None if early is None else asdict(early))
        if not names:
            why = failures[0]["message"] if failures else "there is no annotated video"
            raise DataError(
                f"none of {len(data.videos)} videos could be used: {why}; fix that, then run with --retry-failed"
            )
        scores = write_scores(names)
        _write_diagnosis(folder, plan, task, names)
    return Run(out, scores, failures, spent[0], spent[1], work, stopped_early=early, adaptation=adaptation)


def _finished_videos(folder: RunFolder, state: State, plan: Plan, task: Task[Any, Any]) -> list[str]:
    """Return the videos whose results for every cell are stored."""
    needed = {cell.name for cell in plan.cells}
    return [
        name
        for name in usable_videos(task)
        if name not in state.failed and needed <= load_complete_results(folder, state, task, name).keys()
    ]


def _video_scores(folder: RunFolder, state: State, task: Task[Any, Any], name: str) -> dict[str, float | None] | None:
    """Return the scores of a video by finished cell, None if it could not be used."""
    if name in state.failed:
        return None
    outputs = load_complete_results(folder, state, task, name)
    return {cell: task.video_score(name, output) for cell, output in outputs.items()}


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
        parts=find_plugins(recipe, data.name, model.requested),
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


def _record_failure(job: VideoJob, error: JostleError, note: Note) -> None:
    note(VideoFailed(job.name, type(error).__name__, str(error), error.fault, job.portion))


def _store_results(
    folder: RunFolder, state: State, task: Task[Any, Any], job: VideoJob, result: VideoResult[Any], note: Note
) -> None:
    """Store the results of a video durably: first the file, then the line of the journal."""
    new_outputs = {cell.name: result.outputs[cell.name] for cell in job.cells}
    outputs = load_results(folder, state, task, job.name, job.portion) | new_outputs
    file = results_file(folder, job.name, job.portion)
    checksum = write_results(file, *task.pack(outputs))
    costs = {"clean": asdict(result.clean), "cells": asdict(result.cells)}
    mended = None
    if result.mended is not None:
        before = state.videos.get((job.name, job.portion))
        earlier = {} if before is None or before.mended is None else before.mended
        new = {cell: DamagedFrames.of(one.damaged, left=one.left) for cell, one in result.mended.items()}
        mended = {cell: one for cell, one in (earlier | new).items() if cell in outputs}
    histories = None
    if result.adaptation is not None:
        before = state.videos.get((job.name, job.portion))
        known = {} if before is None or before.histories is None else before.histories
        histories = {cell: one for cell, one in (known | result.adaptation.histories).items() if cell in outputs}
    note(
        VideoKept(
            job.name,
            str(job.path.absolute()),
            checksum,
            kept=source_state(file),
            cells=tuple(to_ranges(i for i, cell in enumerate(task.recipe.cells) if cell.name in outputs)),
            **({} if result.source is None else asdict(result.source)),
            fps=None if job.fps is None else str(job.fps),
            portion=job.portion,
            shown=None if result.frame_indices is None else " ".join(map(str, result.frame_indices)),
            cost=costs,
            mended=mended,
            histories=histories,
        )
    )


def _write_failures(folder: RunFolder, state: State, task: Task[Any, Any]) -> tuple[dict[str, str], ...]:
    events = [event_to_dict(state.failed[name]) for name in usable_videos(task) if name in state.failed]
    failures = tuple({key: one[key] for key in ("video", "error", "message", "fault")} for one in events)
    write_text(folder.failures, [json.dumps(failure) + "\n" for failure in failures])
    return failures


def _write_predictions(
    folder: RunFolder, state: State, plan: Plan, task: Task[Any, Any], names: list[str], note: Note
) -> None:
    """Write the predictions of cells that lack a file or a video."""
    lacking = [cell for cell in plan.cells if plan.there.get(cell.name) != frozenset(names)]
    for some in _chunks(lacking, CELLS_AT_ONCE):
        before = {
            cell.name: task.read(folder.predictions_of(cell.slug)) if cell.name in plan.there else {} for cell in some
        }
        outputs: dict[str, dict[str, Any]] = {cell.name: {} for cell in some}
        for name in names:
            stored: dict[str, Any] | None = None
            for cell in some:
                if name in before[cell.name]:
                    outputs[cell.name][name] = before[cell.name][name]
                    continue
                if stored is None:
                    stored = load_complete_results(folder, state, task, name)
                if cell.name not in stored:
                    raise SourceChanged(_altered_message(folder, state, task, name, cell))
                outputs[cell.name][name] = stored[cell.name]
        for cell in some:
            # The journal records the file before it gets its final name, so that any file with that name is recorded.
            path = folder.predictions_of(cell.slug)
            new = path.with_name(f".{path.stem}.new{path.suffix}")
            task.write(new, outputs[cell.name])
            key = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
            if key not in state.lists:
                note(VideoList(key, tuple(names)))
            note(CellWritten(cell.name, file_fingerprint(new), key))
            os.replace(new, path)


def _altered_message(folder: RunFolder, state: State, task: Task[Any, Any], name: str, cell: Cell) -> str:
    """Return the message that names the results file that changed since the run began."""
    bad = next(one for one in task.portions(name) if cell.name not in load_results(folder, state, task, name, one))
    return f"{results_file(folder, name, bad)}: not what this run wrote; delete it, and its video is processed again"


def _write_diagnosis(folder: RunFolder, plan: Plan, task: Task[Any, Any], names: list[str]) -> None:
    """Write the diagnosis of the clean videos, with those of all other cells under `cells`."""
    diagnoses = {cell.name: task.diagnose(folder.predictions_of(cell.slug), names) for cell in plan.cells}
    clean = diagnoses.pop(CLEAN)
    if clean is not None:
        write_text(folder.diagnosis, [json.dumps(clean | {"cells": diagnoses}), "\n"])


def _chunks(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    for lo in range(0, len(cells), size):
        yield cells[lo : lo + size]


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
