"""Runs with models in separate processes: byte-identical folders for every task, also when a process dies."""

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

from helpers import small_objects, small_predictors, small_recognition, small_run, small_serving, tiny_run
from helpers.small_serving import FakeStreams
from jostle.api.engines import map_around_model, place_of
from jostle.core.cuda import CudaStreams
from jostle.core.types.frame_sets import BoxSets
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.inference.remote import connect_predictor
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.journal import WorkDone, read_events
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.verification import check_run
from jostle.parallel.serving.processes import serving
from jostle.parallel.workers import map_unordered
from jostle.reporting.sections.making import facts_of


@dataclass(frozen=True)
class Task:
    recipe: Recipe
    data: Callable[[dict[str, Path]], Dataset]
    load_predictor: Callable[[], Any]


def boxes(videos: dict[str, Path]) -> Dataset:
    sets = BoxSets(small_objects.CLASSES, small_objects.SETS, small_objects.TRUE)
    return Dataset("folder", "test", Path("data"), (sets,), videos)


PROCESSES = pytest.mark.processes
frames_of = partial(small_recognition.data_of, task="frames")
TASKS = {
    "recognition": Task(small_recognition.RECIPE, small_recognition.data_of, small_predictors.batching_predictor),
    "recognition, put together": Task(
        small_recognition.RECIPE, small_recognition.data_of, small_predictors.concatenating_predictor
    ),
    "frames": Task(small_recognition.FRAME_RECIPE, frames_of, small_recognition.frame_predictor),
    "objects": Task(small_objects.RECIPE, boxes, small_objects.load_predictor),
    "features": Task(small_run.RECIPE, small_run.data_of, small_run.load_predictor),
    "own, of frames": Task(small_run.RECIPE, small_run.data_of, small_predictors.frame_detection_predictor),
    "clips": Task(small_run.RECIPE, small_run.data_of, small_predictors.clip_detection_predictor),
}


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_recognition.write_videos(tmp_path_factory.mktemp("videos"))


def run(task: Task, videos: dict[str, Path], out: Path, load: Callable[[], Any], **options: Any) -> dict[str, bytes]:
    cells = select_cells(task.recipe, [cell.name for cell in task.recipe.cells[1:4]])
    run_benchmark(task.recipe, task.data(videos), BenchmarkModel(load, model="model"), out, cells=cells, **options)
    assert check_run(out).altered == ()
    return tiny_run.content(out)


@pytest.mark.parametrize(
    "name", [name if name == "recognition" else pytest.param(name, marks=PROCESSES) for name in TASKS]
)
def test_served_models_give_the_same_folder(videos: dict[str, Path], tmp_path: Path, name: str) -> None:
    task = TASKS[name]
    expected = run(task, videos, tmp_path / "one", task.load_predictor)
    processes = 2 if name == "recognition" else 1  # each process takes seconds to start
    with serving(task.load_predictor, FakeStreams(2), [{}] * processes) as served:
        served_content = run(task, videos, tmp_path / "fed", partial(connect_predictor, served), jobs=2)
    assert served_content == expected


@pytest.mark.parametrize(
    "name", [name if name == "features" else pytest.param(name, marks=PROCESSES) for name in TASKS]
)
def test_model_of_this_process_gives_the_same_folder(videos: dict[str, Path], tmp_path: Path, name: str) -> None:
    """Workers send their frames to this process; neither the model nor its loader is pickled."""
    task, processes = TASKS[name], set()

    def load() -> Any:
        processes.add(os.getpid())
        return task.load_predictor()

    expected = run(task, videos, tmp_path / "one", load)
    served_content = run(task, videos, tmp_path / "fed", load, jobs=2, engine=partial(map_around_model, "cpu", 0.0))
    assert served_content == expected
    assert processes == {os.getpid()}
    assert not [thread for thread in threading.enumerate() if thread.name.endswith(("(_work)", "(_accept_clients)"))]


@PROCESSES
def test_the_journal_records_where_time_was_spent(videos: dict[str, Path], tmp_path: Path) -> None:
    slow = Task(
        small_recognition.RECIPE, small_recognition.data_of, partial(small_recognition.recognition_predictor, 0.6)
    )
    with serving(slow.load_predictor, FakeStreams(), [{}]) as served:
        load = partial(connect_predictor, served)
        model = BenchmarkModel(load, model="weigher", apart=True)
        ticks: list[Any] = []
        cells, data = select_cells(slow.recipe, ["gaussian_noise"]), slow.data(videos)
        run_benchmark(slow.recipe, data, model, tmp_path / "run", cells=cells, jobs=2, watch=ticks.append)
    (work,) = [event for event in read_events(tmp_path / "run" / "journal.jsonl") if isinstance(event, WorkDone)]
    assert (work.videos, work.workers, work.apart, work.limit) == (4, 2, True, "model")
    assert work.model > 4 * 6 * 0.6 * 0.5  # clips of four videos, clean and noisy, processed one by one
    assert work.decoding > 0
    assert work.corrupting > 0
    assert ticks[-1].limit == "model"
    time_line = dict(facts_of(RunRecord.read(tmp_path / "run")))["time"]
    assert time_line.endswith("limited by the model")
    assert "4 videos by 2 workers" in time_line


def test_workers_do_not_import_torch(videos: dict[str, Path]) -> None:
    """Importing torch would cost seconds and hundreds of megabytes in each worker."""
    job = VideoJob("a", videos["a"], (CLEAN_CELL,), 0)
    with serving(small_predictors.torch_predictor, FakeStreams(), [{}]) as served:
        assert not dict(map_unordered(partial(small_serving.report_torch, served), [job, job], 2))[job]


@PROCESSES
def test_a_killed_model_process_does_not_change_the_results(videos: dict[str, Path], tmp_path: Path) -> None:
    task = TASKS["recognition"]
    expected = run(task, videos, tmp_path / "one", task.load_predictor)
    with serving(task.load_predictor, FakeStreams(), [{}, {}]) as served:
        holders = {served.submit(small_predictors.worker_id, np.zeros((1, 300, 300, 3), np.uint8))() for _ in range(4)}

        def kill_one(done: int, of: int) -> None:
            if done == 1:
                os.kill(min(holders), signal.SIGKILL)

        served_content = run(
            task, videos, tmp_path / "fed", partial(connect_predictor, served), jobs=2, progress=kill_one
        )
    assert served_content == expected


def test_cuda_streams_on_a_cpu(videos: dict[str, Path], tmp_path: Path) -> None:
    """`jostle run` uses one stream on a CPU; on a GPU it uses two and pinned memory."""
    task, streams = TASKS["recognition"], CudaStreams("cpu")
    assert streams.count == 1
    expected = run(task, videos, tmp_path / "one", task.load_predictor)
    with serving(task.load_predictor, streams, [{}]) as served:
        assert run(task, videos, tmp_path / "fed", partial(connect_predictor, served)) == expected


@PROCESSES
def test_the_command_line_with_model_processes(tmp_path: Path) -> None:
    """`--model-processes` prints the same lines and writes the same folder."""
    root = tiny_run.write_folder(tmp_path / "root")
    results = [
        tiny_run.run_command(root, tiny_run.command(out, *more), start_new_session=True)
        for out, more in (("here", ()), ("fed", ("--model-processes", "2")))
    ]
    assert [done.returncode for done in results] == [0, 0], results[1].stderr
    assert results[0].stdout == results[1].stdout
    assert tiny_run.content(root / "fed") == tiny_run.content(root / "here")


@PROCESSES
def test_ctrl_c_ends_all_processes_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    root = tiny_run.write_folder(tmp_path / "root")
    command = tiny_run.command("fed", "--model-processes", "1")
    slow = {"env": tiny_run.environment(TINY_DELAY_S="0.5"), "start_new_session": True, "text": True}
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = subprocess.Popen(command, cwd=root, **slow, **quiet)
    journal = root / "fed" / "journal.jsonl"
    deadline = time.monotonic() + 90
    while not (journal.exists() and journal.read_text().count("\n")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGINT)
    message = program.communicate(timeout=60)[1]
    assert program.returncode == 130, message
    assert "Traceback" not in message
    assert tiny_run.is_gone(program.pid)
    assert tiny_run.run_command(root, command).returncode == 0
    assert tiny_run.run_command(root, tiny_run.command("here")).returncode == 0
    assert tiny_run.content(root / "fed") == tiny_run.content(root / "here")


def test_invalid_numbers_of_model_processes_are_refused() -> None:
    for engine, count, message in (("local", -1, "must not be below 0"), ("ray", 1, "a cluster has one a GPU")):
        with pytest.raises(BadValue, match=message), place_of(engine, "cpu", 1, many=True, model_processes=count):
            pass
