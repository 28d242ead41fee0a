"""Runs of every task: the same bytes after any interruption, without repeated work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers import small_tasks
from helpers.small_run import NAMES
from helpers.small_tasks import TASKS, content, predicted_videos, run
from helpers.stopped_work import Stop, stop_at
from jostle.errors import SourceChanged
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.journal import CellWritten, read_events
from jostle.evaluation.runner.verification import check_run

EVERY = pytest.mark.parametrize("task", TASKS)


@pytest.fixture
def complete_run(finished_runs: dict[str, Run], task: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_runs[task].folder, tmp_path / "whole"))


@EVERY
def test_a_complete_folder_is_confirmed(finished_runs: dict[str, Run], task: str) -> None:
    check = check_run(finished_runs[task].folder)
    cells = 1 + len(finished_runs[task].scores["cells"])
    assert (check.altered, check.lacking, check.videos, check.of, len(check.cells)) == ((), (), 4, 4, cells)
    files = [path.read_bytes() for path in (finished_runs[task].folder / "predictions").iterdir()]
    assert len(set(files)) == len(files) == cells


@pytest.mark.fault("F76")
@pytest.mark.parametrize(
    ("task", "jobs"),
    [*((task, 1) for task in TASKS), ("detection", 2), pytest.param("recognition", 2, marks=pytest.mark.processes)],
)
def test_results_do_not_depend_on_jobs_or_order(
    videos: dict[str, Path], finished_runs: dict[str, Run], tmp_path: Path, task: str, jobs: int
) -> None:
    run(dict(reversed(videos.items())), tmp_path / "back", task, jobs=jobs)
    assert content(tmp_path / "back") == content(finished_runs[task].folder)


@pytest.mark.fault("F62")
@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("after", range(6))  # lines of the journal: from none to most
def test_a_killed_run_resumes_to_the_same_bytes(
    videos: dict[str, Path], finished_runs: dict[str, Run], tmp_path: Path, task: str, jobs: int, after: int
) -> None:
    out = tmp_path / "run"
    program = [sys.executable, small_tasks.__file__, str(videos["a"].parent), str(out), str(jobs), task]
    process = subprocess.Popen(program, env=os.environ | {"OMP_NUM_THREADS": "1"})
    journal = out / "journal.jsonl"
    while process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") >= after:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = predicted_videos(out)
    run(videos, out, task)
    assert content(out) == content(finished_runs[task].folder)
    assert len(predicted_videos(out)) <= len(NAMES) + jobs  # at most the videos in progress
    assert predicted_videos(out)[: len(before)] == before
    assert not list(out.rglob(".*"))
    assert check_run(out).lacking == ()


@EVERY
@pytest.mark.parametrize("with_results", [True, False])
def test_only_a_deleted_predictions_file_is_written_again(
    videos: dict[str, Path], finished_runs: dict[str, Run], complete_run: Path, task: str, with_results: bool
) -> None:
    whole = finished_runs[task]
    cell, file = ("freeze:3", "freeze-3.json") if task == "detection" else ("clean", "clean.npz")
    (complete_run / "predictions" / file).unlink()
    if not with_results:
        shutil.rmtree(complete_run / "videos")
    assert check_run(complete_run).lacking
    kept = {path: path.stat().st_mtime_ns for path in (complete_run / "predictions").iterdir()}
    written = sum(isinstance(event, CellWritten) for event in read_events(complete_run / "journal.jsonl"))
    done = run(videos, complete_run, task)
    assert content(complete_run) == content(whole.folder)
    assert done.clean.joined == (0 if with_results else whole.clean.joined)
    assert (done.cells.joined > 0) == (task == "detection" and not with_results)
    assert all(path.stat().st_mtime_ns == moment for path, moment in kept.items())
    events = [event for event in read_events(complete_run / "journal.jsonl") if isinstance(event, CellWritten)]
    assert [event.cell for event in events[written:]] == [cell]


@EVERY
def test_a_bad_video_is_listed_and_retried_on_request(
    videos: dict[str, Path], finished_runs: dict[str, Run], tmp_path: Path, task: str
) -> None:
    out, broken = tmp_path / "run", tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    mixed = {**videos, "b": broken}
    done = run(mixed, out, task)
    assert [failure["video"] for failure in done.failures] == ["b"]
    classes = {"detection": (1, 1), "recognition": (2, 3)}.get(task, ())
    assert tuple(done.scores["coverage"].values()) == (3, 4, *classes)
    assert all((cell["videos"], cell["of"]) == (3, 4) for cell in done.scores["cells"])
    broken.write_bytes(videos["b"].read_bytes())
    assert run(mixed, out, task).failures == done.failures  # no retry requested
    again = run(mixed, out, task, retry_failed=True)
    assert (again.failures, again.scores["coverage"]["videos"]) == ((), 4)
    assert again.clean.decoded * 4 == finished_runs[task].clean.decoded
    assert content(out) == content(finished_runs[task].folder)


@pytest.mark.fault("F73")
@EVERY
def test_an_edited_predictions_file_is_refused(videos: dict[str, Path], complete_run: Path, task: str) -> None:
    (file,) = (complete_run / "predictions").glob("clean.*")
    file.write_bytes(file.read_bytes() + b" ")
    assert check_run(complete_run).altered == (f"predictions/{file.name} is not what the run wrote",)
    with pytest.raises(SourceChanged, match=f"{file.name}: not what this run wrote"):
        run(videos, complete_run, task)


@pytest.mark.parametrize("task", ["frames", "objects"])
def test_frames_of_a_long_video_are_stored_in_portions(
    videos: dict[str, Path], finished_runs: dict[str, Run], tmp_path: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped run resumes in the middle of a video."""
    monkeypatch.setattr("jostle.evaluation.tasks.similar_frames.PORTION", 2)

    out, ticks = tmp_path / "run", []
    with pytest.raises(Stop, match="3 of 8"):
        run(videos, out, task, progress=stop_at(3))
    assert predicted_videos(out) == ["a", "a", "b"]
    done = run(videos, out, task, watch=ticks.append)
    assert (sorted(predicted_videos(out)), done.clean.joined) == (["a", "a", "b", "b", "c", "c", "d", "d"], 7)
    assert (ticks[-1].done, ticks[-1].total, ticks[-1].unit) == (5, 5, "portions of videos")
    assert content(out) == content(finished_runs[task].folder)
    check = check_run(out)
    assert (check.altered, check.lacking, check.videos) == ((), (), 4)
