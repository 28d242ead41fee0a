"""Fault F110: tampered run folders. Every command that reads one reports the problem, and none crashes."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.refusals import refused
from helpers.synthetic_runs import write_run
from helpers.tampering import Tampering, tamperings
from jostle import api
from jostle.core.random import rng_for
from jostle.errors import DataError, JostleError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.analysis.replay import order_for
from jostle.reporting.trackers import tracker_payload
from jostle.reporting.viewer.excerpt_pages import gallery_page
from jostle.reporting.viewer.pages import cell_page, index_page, run_page, unfinished_page
from jostle.reporting.viewer.runs import RunCollection, Snapshot, Unfinished, Waiting
from jostle.reporting.viewer.video_page import video_page

TASKS = ("detection", "recognition", "frames", "questions", "moments")
CELLS = ("thumos14-c/black_frame:1", "thumos14-c/motion_blur:3")
CODES = (3, 6)
PATIENCE_S = 30  # per verb, which takes a fraction of a second
QUICK = 12  # tamperings of each task in the quick suite


def build(out: Path, task: str) -> Path:
    return write_run(out, task, videos=4, cells=CELLS, fails=("video_0003",))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {task: build(tmp_path_factory.mktemp(task) / "run", task) for task in TASKS}


def report(run: Path, intact: Path, out: Path) -> None:
    api.report(run, out / "report.html", csv=out / "cells.csv", latex=out / "latex", draws=2)


def diff(run: Path, intact: Path, out: Path) -> None:
    api.diff(intact, run, draws=2, any_truth=True).to_dict()


def verify(run: Path, intact: Path, out: Path) -> None:
    api.verify(run).to_dict()


def card(run: Path, intact: Path, out: Path) -> None:
    api.card(run, out)


def track(run: Path, intact: Path, out: Path) -> None:
    tracker_payload(RunRecord.read(run))


def resume(run: Path, intact: Path, out: Path) -> None:
    build(run, RunRecord.read(intact).task.name)


def picture(run: Path, intact: Path, out: Path) -> None:
    record = RunRecord.read(run)
    for cell in (CLEAN, *CELLS):
        order_for(record, "video_0001", cell)


def view(run: Path, intact: Path, out: Path) -> None:
    collection = RunCollection([intact])
    (key,) = collection.folders
    collection.folders[key] = run  # the folder was intact when the viewer was started
    try:
        index_page(collection)
        snapshot = collection.run(key)
        if isinstance(snapshot, Unfinished):
            unfinished_page(snapshot)
            return
        assert isinstance(snapshot, Snapshot)
        run_page(snapshot)
        gallery_page(snapshot)
        while isinstance(snapshot.analysis(), Waiting):
            time.sleep(0.005)
        for cell in snapshot.cells.values():
            cell_page(snapshot, cell)
            video_page(snapshot, cell, "video_0001")
    finally:
        collection.close()


VERBS: dict[str, Callable[[Path, Path, Path], None]] = {
    verb.__name__: verb for verb in (report, diff, verify, card, track, resume, picture, view)
}


@pytest.fixture
def time_limit() -> Iterator[None]:
    """Fail the test if a verb hangs."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done in {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def misbehaviour_of(verb: str, run: Path, intact: Path, out: Path) -> str | None:
    """Return how a verb misbehaves with a folder; None if it works or refuses correctly."""
    signal.alarm(PATIENCE_S)
    try:
        VERBS[verb](run, intact, out)
    except JostleError as error:
        if error.exit_code not in CODES and verb != "view":  # the viewer shows the message and keeps running
            return f"{type(error).__name__} with exit code {error.exit_code}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return None


def misbehaviours(intact: Path, tampered: list[Tampering], folder: Path) -> list[str]:
    messages = []
    for number, tampering in enumerate(tampered):
        for verb in VERBS:
            run, out = folder / f"{number}-{verb}", folder / f"out-{number}-{verb}"
            out.mkdir()
            shutil.copytree(intact, run)
            tampering.do(run / tampering.file)
            fault = misbehaviour_of(verb, run, intact, out)
            if fault is not None:
                messages.append(f"{verb}, {tampering}: {fault}")
            shutil.rmtree(run)
            shutil.rmtree(out)
    return messages


@pytest.mark.fault("F110")
@pytest.mark.parametrize("task", TASKS)
def test_f110_every_verb_accepts_an_intact_folder(runs: dict[str, Path], task: str, tmp_path: Path) -> None:
    untouched = Tampering("run.json", "nothing", lambda path: None)
    for verb in VERBS:
        (tmp_path / verb).mkdir()
        VERBS[verb](runs[task], runs[task], tmp_path / verb)
    assert misbehaviours(runs[task], [untouched], tmp_path) == []


@pytest.mark.fault("F110")
@pytest.mark.usefixtures("time_limit")
@pytest.mark.parametrize("task", TASKS)
def test_f110_a_sample_of_tampered_folders(runs: dict[str, Path], task: str, tmp_path: Path) -> None:
    candidates = list(tamperings(runs[task]))
    indices = rng_for(0, "tampering", task).choice(len(candidates), QUICK, replace=False)
    assert misbehaviours(runs[task], [candidates[i] for i in sorted(indices.tolist())], tmp_path) == []


@pytest.mark.fault("F110")
@pytest.mark.slow
@pytest.mark.usefixtures("time_limit")
@pytest.mark.parametrize("task", TASKS)
def test_f110_all_tampered_folders(runs: dict[str, Path], task: str, tmp_path: Path) -> None:
    assert misbehaviours(runs[task], list(tamperings(runs[task])), tmp_path) == []


@pytest.mark.fault("F110")
def test_f110_messages_name_file_key_and_remedy(runs: dict[str, Path], tmp_path: Path) -> None:
    patterns = {
        "run.json: negative at videos": r"run\.json: videos is -1, not at least 0; restore it from a copy, or start",
        "run.json: removed at content.cells.0.cell": r"run\.json: content\.cells\[0\]\.cell is missing; ",
        "scores.json: text at clean": r"scores\.json: clean is the text 'nonsense', not a number; the same",
        "scores.json: a pipe": r"scores\.json: not a regular file; .*the same `jostle run` resumes",
    }
    by_name = {str(tampering): tampering for tampering in tamperings(runs["detection"])}
    for name, pattern in patterns.items():
        run = tmp_path / name.replace(" ", "-").replace(":", "")
        shutil.copytree(runs["detection"], run)
        by_name[name].do(run / by_name[name].file)
        with refused("F110", DataError, match=pattern):
            RunRecord.read(run)
