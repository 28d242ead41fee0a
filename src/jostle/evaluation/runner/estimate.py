"""Trial of a model on one video before a run: whether it works, and how long the run may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from jostle.core.formatting import time_of
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.timing import LIMITS, StageTimes, elapsed_stage_times, measure_stage
from jostle.errors import BadValue, DataError, JostleError
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.inference.jobs import MODEL_FAULTS, Predictor, VideoJob
from jostle.evaluation.recipes.recipe import CLEAN, CLEAN_CELL
from jostle.evaluation.runner.state import Plan, claimed_frames
from jostle.features.windows import WindowGrid
from jostle.io.video.source import probe

AGAIN_S = 10.0  # shorter trials are repeated, as the first one loads and compiles
TRIED = 3  # videos to try until one can be used
OPENED = 1000  # files at most: opening takes milliseconds, and some data sets have 100,000 files
FRAMES_TRIED = 16  # per video, for tasks on single frames
CELLS_TRIED = 6  # per video, to measure the time by kind of work


@dataclass(frozen=True)
class TrialResult:
    """Measurements of a trial on one clean video."""

    frames: int  # number of frames processed
    seconds: float  # duration of the trial
    bytes: int  # size of the prediction for one cell
    windows: int | None = None  # feature windows of all clean videos; None without features, or if not timed
    parts: StageTimes | None = None  # time of one video in all its cells, by kind of work; None if not timed


def run_trial(
    load: Callable[[], Predictor[Any]],
    video_jobs: tuple[VideoJob, ...],
    *,
    timed: bool = False,
    busy_s: Callable[[], float] | None = None,
) -> TrialResult | None:
    """Process the first usable of some videos, clean; None if none is usable.

    Args:
        timed: whether to measure time, which processes a few other cells too.
        busy_s: seconds that model processes have computed so far, where the model runs in its own processes.

    Raises:
        BadValue: if the model does not suit the data, as when it has other classes.
        DataError: F78, F121 or F122 if it fails on every video that is tried.
    """
    failed: JostleError | None = None
    predict = load()
    for job in video_jobs[:TRIED]:
        some = replace(job, cells=(CLEAN_CELL,), frames=job.frames[:FRAMES_TRIED])
        try:
            outputs, seconds = _time_prediction(predict, some)
            if timed and seconds < AGAIN_S:
                outputs, seconds = _time_prediction(predict, some)
        except BadValue:
            raise
        except JostleError as error:
            failed = error
            continue
        size = sum(getattr(one, "nbytes", 0) for one in outputs.values())
        if not timed:
            return TrialResult(_count_frames(some), seconds, size)
        return TrialResult(
            _count_frames(some),
            seconds,
            size,
            _count_windows(predict, video_jobs),
            _measure_parts(predict, job, busy_s),
        )
    if isinstance(failed, DataError) and failed.fault in MODEL_FAULTS:
        raise failed
    return None


@dataclass(frozen=True)
class TimeEstimate:
    """Estimated time and disk space of a run.

    Attributes:
        jobs: videos at once.
        windows: feature windows of all clean videos; None without features.
        clean_s, all_s: seconds for the clean videos, and if every cell takes as long.
        parts: seconds of one video in its cells by kind of work; None if they were not measured.
        limit: the slowest of these with as many workers and model processes.
    """

    jobs: int
    frames_per_s: float
    windows: int | None
    clean_s: float
    all_s: float
    disk_bytes: int
    parts: StageTimes | None
    limit: str | None

    @property
    def lines(self) -> tuple[str, ...]:
        """The estimate in words."""
        windows = "" if self.windows is None else f" with {self.windows} windows"
        line = (
            f"about {time_of(self.clean_s)} for the clean videos{windows}, {time_of(self.all_s)} if every cell takes "
            f"as long, with {self.jobs} at once; {self.disk_bytes / 1e6:.1f} MB on the disk"
        )
        if self.parts is None or self.limit is None:
            return (line,)
        parts = ", ".join(f"{LIMITS[part]} {seconds:.1f} s" for part, seconds in asdict(self.parts).items())
        return (line, f"limited by {LIMITS[self.limit]}: a video in its cells takes {parts}")


@dataclass(frozen=True)
class WorkEstimate(Result):
    """Work that is left to do in a run folder, and about how long it takes."""

    cells: tuple[str, ...]
    videos: int
    looks: int  # videos in cells that a model processes
    failed: tuple[str, ...]  # videos that could not be used before and are not tried again
    frames: int  # that files declare, 0 for unreadable ones; extrapolated from a sample where there are many
    opened: int  # files of that sample
    estimate: TimeEstimate | None

    def tables(self) -> tuple[Table, ...]:
        """Return the amounts of work, and the time in words."""
        amounts = {"videos": self.videos, "about frames" if self.opened < self.videos else "frames": self.frames}
        amounts |= {"cells": len(self.cells), "looks": self.looks, "failed before": len(self.failed)}
        columns = tuple(Column(name, "count") for name in amounts)
        notes = () if self.estimate is None else self.estimate.lines
        return (Table("", columns, (tuple(amounts.values()),), notes),)


def estimate_cost(plan: Plan, first: TrialResult | None, jobs: int, processes: int = 0) -> WorkEstimate:
    """Estimate the seconds of a plan: for the clean videos and, if every cell took as long, for all cells.

    Codecs take longer than that, and cells that change few frames take far less. Codec cells need no disk space, as
    streams are decoded at once.
    """
    some = sample_jobs(plan.video_jobs)
    all_of = len(plan.video_jobs) / max(len(some), 1)
    claims = [claimed_frames(job.path) for job in some]
    estimate = None
    if first is not None and first.frames:
        rate = first.frames / max(first.seconds, 1e-9)
        used = [len(job.frames) or claim for job, claim in zip(some, claims, strict=True)]
        in_cells = sum(frames * len(job.cells) for job, frames in zip(some, used, strict=True)) * all_of
        estimate = TimeEstimate(
            jobs=jobs,
            frames_per_s=rate,
            windows=first.windows,
            clean_s=sum(used) * all_of / rate / jobs,
            all_s=in_cells / rate / jobs,
            disk_bytes=2 * plan.looks * first.bytes,  # of each video, and of each cell
            parts=first.parts,
            limit=None if first.parts is None else _find_bottleneck(first.parts, jobs, processes),
        )
    return WorkEstimate(
        cells=tuple(cell.name for cell in plan.cells),
        videos=plan.videos,
        looks=plan.looks,
        failed=plan.failed,
        frames=round(sum(claims) * all_of),
        opened=len(some),
        estimate=estimate,
    )


def _measure_parts(predict: Predictor[Any], job: VideoJob, busy_s: Callable[[], float] | None) -> StageTimes:
    """Extrapolate the time of a video in all cells of a job, by kind of work, from some of its cells."""
    others = [cell for cell in job.cells if cell.name != CLEAN]
    some = [others[i * len(others) // CELLS_TRIED] for i in range(CELLS_TRIED)] if len(others) > CELLS_TRIED else others
    few = replace(job, cells=(CLEAN_CELL, *some), frames=job.frames[:FRAMES_TRIED])
    spent, model = StageTimes(), 0.0
    for _ in range(2):  # the first time compiles kernels
        before, busy = elapsed_stage_times(), 0.0 if busy_s is None else busy_s()
        try:
            with measure_stage("corrupting"):
                predict(few)
        except JostleError:  # a cell cannot be applied to it, which the run reports
            return StageTimes()
        spent = elapsed_stage_times() - before
        model = spent.model if busy_s is None else busy_s() - busy
    more = len(others) / max(len(some), 1)
    more_clean = (1 + len(others)) / (1 + len(some))
    longer = len(job.frames) / len(few.frames) if job.frames else 1.0
    return StageTimes(spent.decoding * longer, spent.corrupting * more * longer, model * more_clean * longer)


def _find_bottleneck(parts: StageTimes, jobs: int, processes: int) -> str | None:
    """Return the slowest part: of the workers, or of the processes that hold the model."""
    if processes and parts.model / processes > (parts.decoding + parts.corrupting) / jobs:
        return "model"
    return replace(parts, model=0.0 if processes else parts.model).limit(waited_for=False)


def _time_prediction(predict: Predictor[Any], job: VideoJob) -> tuple[dict[str, Any], float]:
    begin = time.perf_counter()
    return predict(job).outputs, time.perf_counter() - begin


def _count_windows(predict: Predictor[Any], video_jobs: tuple[VideoJob, ...]) -> int | None:
    """Count the feature windows of clean videos, by the number of frames that files declare."""
    if not isinstance(predict, FeatureDetectionPredictor):
        return None
    spec, counted, some = predict.extractor.spec, 0, sample_jobs(video_jobs)
    grid = WindowGrid(spec.frames, spec.stride, predict.rule)
    for job in some:
        if frames := claimed_frames(job.path):
            counted += grid.count(
                frames if spec.fps is None else max(int(frames / probe(job.path, fps=job.fps).fps * spec.fps), 1)
            )
    return round(counted * len(video_jobs) / len(some))


def sample_jobs(video_jobs: tuple[VideoJob, ...]) -> tuple[VideoJob, ...]:
    """Return at most `OPENED` jobs, evenly spaced, to open for an estimate."""
    return (
        video_jobs
        if len(video_jobs) <= OPENED
        else tuple(video_jobs[i * len(video_jobs) // OPENED] for i in range(OPENED))
    )


def _count_frames(job: VideoJob) -> int:
    return len(job.frames) or claimed_frames(job.path)
