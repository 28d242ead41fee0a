"""One session of a run: the work that its folder lacks is planned, processed, and its scores are written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from jostle.errors import DataError, JostleError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.jobs import JobEngine, VideoAdaptation, VideoJob, VideoResult, WorkerFactory
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import Event, WorkDone
from jostle.evaluation.run_folder.metadata import RunFacts, StoppedEarly, format_adaptation
from jostle.evaluation.run_folder.scores import summarize_scores
from jostle.evaluation.runner.online_run import OnlineRun, is_online
from jostle.evaluation.runner.progress import ProgressTracker, Watch, WorkTimer
from jostle.evaluation.runner.reuse import check_reuse, update_about
from jostle.evaluation.runner.source_statistics import FILE as STATISTICS
from jostle.evaluation.runner.state import order_for_workers, plan_work, usable_videos
from jostle.evaluation.runner.store import RunStore
from jostle.evaluation.tasks.task import Task
from jostle.features.extraction import Cost
from jostle.io.files.atomic import write_bytes, write_text
from jostle.io.files.ledger import Ledger

Progress = Callable[[int, int], None]


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


class Session:
    """Session of a run in its folder, which is locked meanwhile.

    Args:
        journal: the open journal of the folder.
        cells: cells to run; results of other cells in the folder are kept, and scored with them.
        retry_failed: process videos again that could not be used.
        stopping: decides the order of videos, and when the run ends; None for all videos.
    """

    def __init__(
        self,
        folder: RunFolder,
        task: Task[Any, Any],
        model: BenchmarkModel,
        facts: RunFacts,
        journal: Ledger[Event],
        *,
        cells: Sequence[Cell],
        retry_failed: bool,
        watch: Watch | None,
        stopping: StoppingRule | None,
    ) -> None:
        self._folder, self._task, self._model, self._stopping = folder, task, model, stopping
        statistics = folder.path / STATISTICS
        if model.source_statistics is not None and not statistics.exists():
            write_bytes(statistics, [model.source_statistics])
        for path in folder.leftovers():
            with contextlib.suppress(OSError):
                path.unlink()
        self._store, self._tracker = RunStore(folder, task, journal), ProgressTracker(task, watch)
        state, on_kept = self._store.state, None if watch is None else self._tracker.add_result
        plan = plan_work(folder, state, task, cells, seed=facts.seed, retry_failed=retry_failed, on_kept=on_kept)
        self._online = None if not is_online(model.adapt) else OnlineRun(folder, (facts.adapt or {})["order"])
        self._plan = plan if self._online is None else self._online.plan(plan, state, task, facts.seed)
        by_video = all(job.portion is None for job in self._plan.video_jobs)
        self._tracker.unit = "videos" if by_video else "portions of videos"
        self._clean, self._cells = Cost(), Cost()
        self._adaptation: VideoAdaptation | None = None
        self._work: WorkDone | None = None

    def process(self, engine: JobEngine, jobs: int, progress: Progress | None) -> None:
        """Process the videos that the folder lacks, and store the results of each."""
        online, stopping, total = self._online, self._stopping, len(self._plan.video_jobs)
        factory = WorkerFactory(self._model.load if online is None else partial(online.load, self._model.load))
        video_jobs = self._jobs_in_order(jobs)
        timer = WorkTimer(max(min(jobs, total), 1), self._model.apart)
        checked = check_reuse(self._folder, engine, factory, video_jobs, jobs, self._model.adapt, stopping is not None)
        with nullcontext() if online is None else online.saving(), closing(checked) as results:
            for done, (job, result) in enumerate(results, 1):
                if isinstance(result, JostleError):
                    self._store.record_failure(job, result)
                    self._tracker.failed += 1
                else:
                    self._keep(job, result, timer)
                if progress is not None:
                    progress(done, total)
                self._tracker.update(done, total, timer.limit)
                if stopping is not None and self._may_stop(stopping, [job.name]):
                    break
        self._work = timer.to_event()
        if self._work is not None:
            self._store.note(self._work)

    def finish(self) -> Run:
        """Write failures, scores and diagnosis of all videos so far.

        Raises:
            DataError: if none of the videos could be used.
        """
        failures, names, early = self._store.write_failures(), self._store.usable, None
        if self._stopping is not None and self._stopping.decided:
            complete = self._store.finished_videos(self._plan.cells)
            early, names = self._stopping.to_record() if len(complete) < len(names) else None, complete
        update_about(self._folder, stopped_early=None if early is None else asdict(early))
        if not names:
            why = failures[0]["message"] if failures else "there is no annotated video"
            raise DataError(
                f"none of {len(self._task.data.videos)} videos could be used: {why}; fix that, then run with "
                "--retry-failed"
            )
        scores = self._write_scores(names)
        self._store.write_diagnosis(self._plan, names)
        return Run(
            self._folder.path,
            scores,
            failures,
            self._clean,
            self._cells,
            self._work,
            stopped_early=early,
            adaptation=self._adaptation,
        )

    def _jobs_in_order(self, jobs: int) -> Sequence[VideoJob]:
        """Return the jobs in the order of the stopping rule, none if it may stop already, or the best for workers."""
        video_jobs = self._plan.video_jobs
        if self._stopping is None:
            return order_for_workers(video_jobs) if jobs > 1 and self._online is None else video_jobs
        left = {job.name for job in video_jobs}
        if self._may_stop(self._stopping, [name for name in usable_videos(self._task) if name not in left]):
            return ()
        place = {name: i for i, name in enumerate(self._stopping.order)}
        return tuple(sorted(video_jobs, key=lambda job: place[job.name]))

    def _keep(self, job: VideoJob, result: VideoResult[Any], timer: WorkTimer) -> None:
        with timer.writing():
            self._store.store_results(job, result)
        timer.add(result.spent, by_caller=result.by_caller)
        self._clean += result.clean
        self._cells += result.cells
        if result.adaptation is not None:
            self._adaptation = result.adaptation + self._adaptation
        if self._online is not None:
            self._online.save()
        self._tracker.add_result(job.name, result.outputs)

    def _may_stop(self, stopping: StoppingRule, added: Sequence[str]) -> bool:
        for name in added:
            stopping.add(name, self._store.video_scores(name))
        if stopping.due:
            self._write_scores(self._store.finished_videos(self._plan.cells))
            stopping.read(self._folder.path)
        return stopping.decided

    def _write_scores(self, names: list[str]) -> dict[str, Any]:
        task, model, cells = self._task, self._model, self._plan.cells
        self._store.write_predictions(self._plan, names)
        values = {cell.name: task.measure(self._folder.predictions_of(cell.slug), names) for cell in cells}
        coverage, adapted = task.coverage(names), format_adaptation(model.adapt)
        scores = summarize_scores(task.recipe, model.model, cells, values, coverage, model.mend, adapted)
        write_text(self._folder.scores, [json.dumps(scores, indent=1), "\n"])
        return scores
