"""Runs whose models are in processes of their own: the same folder, to the byte, for every task and whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import small_looks, small_objects, small_recognition, small_run, small_serving, tiny_run
from helpers.small_serving import FakeStreams
from jostle.api.engines import map_around_model, place_of
from jostle.core.cuda import CudaStreams
from jostle.datasets.dataset import Dataset
from jostle.datasets.frame_sets import BoxSets
from jostle.errors import BadValue
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.inference.remote import connect_predictor
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.run_folder.journal import WorkDone, read_events
from jostle.evaluation.runner.runner import BenchmarkModel, run_benchmark
from jostle.evaluation.runner.verification import check_run
from jostle.parallel.serving.processes import serving
from jostle.parallel.workers import map_unordered
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.html.composition import making_of


@dataclass(frozen=True)
class Task:
    recipe: Recipe
    data: Callable[[dict[str, Path]], Dataset]
    look: Callable[[], Any]


def boxes(videos: dict[str, Path]) -> Dataset:
    sets = BoxSets(small_objects.CLASSES, small_objects.SETS, small_objects.TRUE)
    return Dataset("folder", "test", Path("data"), (sets,), videos)


PROCESSES = pytest.mark.processes
frames_of = partial(small_recognition.data_of, task="frames")
TASKS = {
    "recognition": Task(small_recognition.RECIPE, small_recognition.data_of, small_looks.gathering),
    "recognition, put together": Task(small_recognition.RECIPE, small_recognition.data_of, small_looks.concatenating),
    "frames": Task(small_recognition.FRAME_RECIPE, frames_of, small_recognition.seeing_frames),
    "objects": Task(small_objects.RECIPE, boxes, small_objects.looking),
    "features": Task(small_run.RECIPE, small_run.data_of, small_run.looking),
    "own, of frames": Task(small_run.RECIPE, small_run.data_of, small_looks.by_frames),
    "clips": Task(small_run.RECIPE, small_run.data_of, small_looks.by_clips),
}


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_recognition.write_videos(tmp_path_factory.mktemp("videos"))


def run(task: Task, videos: dict[str, Path], out: Path, load: Callable[[], Any], **asked: Any) -> dict[str, bytes]:
    cells = select_cells(task.recipe, [cell.name for cell in task.recipe.cells[1:4]])
    run_benchmark(task.recipe, task.data(videos), BenchmarkModel(load, "model"), out, cells=cells, **asked)
    assert check_run(out).altered == ()
    return tiny_run.content(out)


@pytest.mark.parametrize(
    "name", [name if name == "recognition" else pytest.param(name, marks=PROCESSES) for name in TASKS]
)
def test_the_same_folder_as_of_one_process(videos: dict[str, Path], tmp_path: Path, name: str) -> None:
    task = TASKS[name]
    known = run(task, videos, tmp_path / "one", task.look)
    processes = 2 if name == "recognition" else 1  # each takes seconds to start
    with serving(task.look, FakeStreams(2), [{}] * processes) as served:
        fed = run(task, videos, tmp_path / "fed", partial(connect_predictor, served), jobs=2)
    assert fed == known


@pytest.mark.parametrize(
    "name", [name if name == "features" else pytest.param(name, marks=PROCESSES) for name in TASKS]
)
def test_model_of_this_process_gives_the_same_folder(videos: dict[str, Path], tmp_path: Path, name: str) -> None:
    """Workers send it their frames; neither the model nor what loads it is pickled."""
    task, processes = TASKS[name], set()

    def load() -> Any:
        processes.add(os.getpid())
        return task.look()

    known = run(task, videos, tmp_path / "one", load)
    fed = run(task, videos, tmp_path / "fed", load, jobs=2, engine=partial(map_around_model, "cpu", 0.0))
    assert fed == known
    assert processes == {os.getpid()}
    assert not [thread for thread in threading.enumerate() if thread.name.endswith(("(_work)", "(_accept_clients)"))]


@PROCESSES
def test_the_journal_says_what_the_time_went_to(videos: dict[str, Path], tmp_path: Path) -> None:
    slow = Task(small_recognition.RECIPE, small_recognition.data_of, partial(small_recognition.recognising, 0.6))
    with serving(slow.look, FakeStreams(), [{}]) as served:
        asked = partial(connect_predictor, served)
        contestant = BenchmarkModel(asked, "weigher", apart=True)
        ticks: list[Any] = []
        cells, data = select_cells(slow.recipe, ["gaussian_noise"]), slow.data(videos)
        run_benchmark(slow.recipe, data, contestant, tmp_path / "run", cells=cells, jobs=2, watch=ticks.append)
    (work,) = [event for event in read_events(tmp_path / "run" / "journal.jsonl") if isinstance(event, WorkDone)]
    assert (work.videos, work.workers, work.apart, work.limit) == (4, 2, True, "model")
    assert work.model > 4 * 6 * 0.6 * 0.5  # clips of four videos, clean and with noise, one after another
    assert work.decoding > 0
    assert work.corrupting > 0
    assert ticks[-1].limit == "model"
    (said,) = [fact for what, fact in making_of(RunRecord.read(tmp_path / "run"), "run").facts if what == "time"]
    assert said.endswith("limited by the model")
    assert "4 videos by 2 workers" in said


def test_workers_do_without_torch(videos: dict[str, Path]) -> None:
    """It takes seconds to import and hundreds of megabytes, in each of them."""
    order = VideoJob("a", videos["a"], (CLEAN_CELL,), 0)
    with serving(small_looks.with_torch, FakeStreams(), [{}]) as served:
        assert not dict(map_unordered(partial(small_serving.telling_of_torch, served), [order, order], 2))[order]


@PROCESSES
def test_a_process_that_dies_in_the_middle_changes_nothing(videos: dict[str, Path], tmp_path: Path) -> None:
    task = TASKS["recognition"]
    known = run(task, videos, tmp_path / "one", task.look)
    with serving(task.look, FakeStreams(), [{}, {}]) as served:
        holders = {served.submit(small_looks.who, np.zeros((1, 300, 300, 3), np.uint8))() for _ in range(4)}

        def kill_one(done: int, of: int) -> None:
            if done == 1:
                os.kill(min(holders), signal.SIGKILL)

        fed = run(task, videos, tmp_path / "fed", partial(connect_predictor, served), jobs=2, progress=kill_one)
    assert fed == known


def test_streams_of_a_cpu(videos: dict[str, Path], tmp_path: Path) -> None:
    """What `jostle run` uses here; on a GPU there are two, and memory is pinned."""
    task, streams = TASKS["recognition"], CudaStreams("cpu")
    assert streams.count == 1
    known = run(task, videos, tmp_path / "one", task.look)
    with serving(task.look, streams, [{}]) as served:
        assert run(task, videos, tmp_path / "fed", partial(connect_predictor, served)) == known


@PROCESSES
def test_the_command(tmp_path: Path) -> None:
    """`--model-processes` prints the same lines and writes the same folder."""
    root = tiny_run.write_folder(tmp_path / "root")
    told = [
        tiny_run.said(root, tiny_run.command(out, *more), start_new_session=True)
        for out, more in (("here", ()), ("fed", ("--model-processes", "2")))
    ]
    assert [done.returncode for done in told] == [0, 0], told[1].stderr
    assert told[0].stdout == told[1].stdout
    assert tiny_run.content(root / "fed") == tiny_run.content(root / "here")


@PROCESSES
def test_ctrl_c_ends_them_all_and_the_run_goes_on(tmp_path: Path) -> None:
    root = tiny_run.write_folder(tmp_path / "root")
    words = tiny_run.command("fed", "--model-processes", "1")
    slow = {"env": tiny_run.environment(TINY_DELAY_S="0.5"), "start_new_session": True, "text": True}
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = subprocess.Popen(words, cwd=root, **slow, **quiet)
    journal = root / "fed" / "journal.jsonl"
    deadline = time.monotonic() + 90
    while not (journal.exists() and journal.read_text().count("\n")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGINT)
    said = program.communicate(timeout=60)[1]
    assert program.returncode == 130, said
    assert "Traceback" not in said
    assert tiny_run.is_gone(program.pid)
    assert tiny_run.said(root, words).returncode == 0
    assert tiny_run.said(root, tiny_run.command("here")).returncode == 0
    assert tiny_run.content(root / "fed") == tiny_run.content(root / "here")


def test_model_processes_that_cannot_be_are_refused() -> None:
    for engine, count, says in (("local", -1, "must not be below 0"), ("ray", 1, "a cluster has one a GPU")):
        with pytest.raises(BadValue, match=says), place_of(engine, "cpu", 1, many=True, model_processes=count):
            pass
