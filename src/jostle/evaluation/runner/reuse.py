"""Check of reuse in a run: the first corrupted cell of one video is computed both ways before any result is used.

Where jostle makes batches, it proves that rows do not depend on them. This check covers the rest: networks of users,
and models in other processes, whose batches workers share.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from jostle.errors import JostleError
from jostle.evaluation.inference.jobs import JobEngine, JobResult, VideoJob, first_corrupted
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.runner.state import file_size
from jostle.io.files.atomic import write_text

Start = Callable[[], Callable[[VideoJob], JobResult[Any]]]
Results = Generator[tuple[VideoJob, JobResult[Any]], None, None]


def check_reuse(
    folder: RunFolder,
    engine: JobEngine,
    start: Start,
    jobs: Sequence[VideoJob],
    workers: int,
    adapt: Mapping[str, Any] | None,
    in_order: bool,
) -> Results:
    """Yield the results of jobs, none of which reuses what would have other bits if it were computed again.

    Results are held back until one video is checked. Where it has other bits, they are dropped, and all jobs are done
    again without reuse: a warning says so, and run.json.

    Args:
        adapt: how the network adapts to videos; where it does, nothing is reused or checked.
        in_order: whether the order of jobs matters, so that the first is checked and not the shortest.
    """
    on = adapt is None and folder.read_about().reuse == "on"
    left = list(jobs) if on or adapt is not None else [replace(job, reuse=False) for job in jobs]
    while on and (candidate := _candidate(left, in_order)) is not None:
        others = [job for job in left if job is not candidate]
        marked = replace(candidate, check_reuse=True)
        order = [marked if job is candidate else job for job in left] if in_order else [marked, *others]
        held: list[tuple[VideoJob, JobResult[Any]]] = []
        agrees: bool | None = None
        with closing(_run(engine, start, order, workers)) as results:
            for job, result in results:
                if agrees:
                    yield job, result
                elif not job.check_reuse:
                    held.append((job, result))
                elif isinstance(result, JostleError):
                    yield candidate, result
                    break
                elif result.reuse_agrees is False:
                    agrees = False
                    break
                else:
                    agrees = True
                    yield candidate, result
                    yield from held
        if agrees:
            return
        if agrees is None:  # the video cannot be used, so another one is checked
            left = others
            continue
        update_about(folder, reuse="off")
        warnings.warn(
            f"{folder.path}: here a network gives what is reused from the clean video other bits than what is computed "
            "again; so every cell is computed whole, which takes longer, and run.json says that reuse is off",
            stacklevel=4,
        )
        left, on = [replace(job, reuse=False) for job in left], False
    with closing(_run(engine, start, left, workers)) as results:
        yield from results


def update_about(folder: RunFolder, **changes: Any) -> None:
    """Change fields of run.json; None removes one."""
    content = json.loads(folder.about.read_text(encoding="utf-8"))
    updated = {key: value for key, value in (content | changes).items() if value is not None or key not in changes}
    if updated != content:
        write_text(folder.about, [json.dumps(updated, indent=1), "\n"])


def _run(engine: JobEngine, start: Start, jobs: Sequence[VideoJob], workers: int) -> Results:
    return engine(start, jobs, workers, lost=lambda job, error: error)


def _candidate(jobs: Sequence[VideoJob], in_order: bool) -> VideoJob | None:
    """Return the job to check: the shortest with a corrupted cell, by the size of its file, or the first."""
    able = [job for job in jobs if first_corrupted(job.cells) is not None]
    if in_order or not able:
        return able[0] if able else None
    return min(able, key=lambda job: file_size(job.path) or math.inf)
