"""Fault F110: run folders that somebody was at. Every verb that reads one says what is wrong, and none breaks."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.made_runs import made_run
from helpers.tampering import Tampering, tamperings
from jostle import api
from jostle.core.random import rng_for
from jostle.errors import DataError, JostleError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.replay import order_for
from jostle.reporting.trackers import tracker_payload
from jostle.reporting.viewer.pages import cell_page, gallery_page, index_page, run_page, unfinished_page, video_page
from jostle.reporting.viewer.runs import RunCollection, Snapshot, Unfinished, Waiting

TASKS = ("detection", "recognition", "frames", "questions", "moments")
CELLS = ("thumos14-c/black_frame:1", "thumos14-c/motion_blur:3")
CODES = (3, 6)
PATIENCE_S = 30  # with one verb: they take a fraction of a second
QUICK = 12  # tamperings of each task in the quick suite


def build(out: Path, task: str) -> Path:
    return made_run(out, task, videos=4, cells=CELLS, fails=("video_0003",))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {task: build(tmp_path_factory.mktemp(task) / "run", task) for task in TASKS}


def report(run: Path, whole: Path, out: Path) -> None:
    api.report(run, out / "report.html", csv=out / "cells.csv", latex=out / "latex", draws=2)


def diff(run: Path, whole: Path, out: Path) -> None:
    api.diff(whole, run, draws=2, any_truth=True).to_dict()


def verify(run: Path, whole: Path, out: Path) -> None:
    api.verify(run).to_dict()


def card(run: Path, whole: Path, out: Path) -> None:
    api.card(run, out)


def track(run: Path, whole: Path, out: Path) -> None:
    tracker_payload(RunRecord.read(run))


def resume(run: Path, whole: Path, out: Path) -> None:
    build(run, RunRecord.read(whole).task)


def picture(run: Path, whole: Path, out: Path) -> None:
    record = RunRecord.read(run)
    for cell in (CLEAN, *CELLS):
        order_for(record, "video_0001", cell)


def view(run: Path, whole: Path, out: Path) -> None:
    shelf = RunCollection([whole])
    (key,) = shelf.folders
    shelf.folders[key] = run  # it was whole when the viewer was started
    try:
        index_page(shelf)
        found = shelf.run(key)
        if isinstance(found, Unfinished):
            unfinished_page(found)
            return
        assert isinstance(found, Snapshot)
        run_page(found)
        gallery_page(found)
        while isinstance(found.surveyed(), Waiting):
            time.sleep(0.005)
        for cell in found.cells.values():
            cell_page(found, cell)
            video_page(found, cell, "video_0001")
    finally:
        shelf.close()


VERBS: dict[str, Callable[[Path, Path, Path], None]] = {
    verb.__name__: verb for verb in (report, diff, verify, card, track, resume, picture, view)
}


@pytest.fixture
def in_time() -> Iterator[None]:
    """A verb that waits for ever fails instead."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done in {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def fault_of(verb: str, run: Path, whole: Path, out: Path) -> str | None:
    """What is wrong with how a verb takes a folder; None if it works or refuses as it should."""
    signal.alarm(PATIENCE_S)
    try:
        VERBS[verb](run, whole, out)
    except JostleError as error:
        if error.exit_code not in CODES and verb != "view":  # which shows the message and stays
            return f"{type(error).__name__} with exit code {error.exit_code}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return None


def faults(whole: Path, chosen: list[Tampering], folder: Path) -> list[str]:
    found = []
    for number, tampering in enumerate(chosen):
        for verb in VERBS:
            run, out = folder / f"{number}-{verb}", folder / f"out-{number}-{verb}"
            out.mkdir()
            shutil.copytree(whole, run)
            tampering.do(run / tampering.file)
            fault = fault_of(verb, run, whole, out)
            if fault is not None:
                found.append(f"{verb}, {tampering}: {fault}")
            shutil.rmtree(run)
            shutil.rmtree(out)
    return found


@pytest.mark.fault("F110")
@pytest.mark.parametrize("task", TASKS)
def test_f110_every_verb_takes_a_whole_folder(runs: dict[str, Path], task: str, tmp_path: Path) -> None:
    untouched = Tampering("run.json", "nothing", lambda path: None)
    for verb in VERBS:
        (tmp_path / verb).mkdir()
        VERBS[verb](runs[task], runs[task], tmp_path / verb)
    assert faults(runs[task], [untouched], tmp_path) == []


@pytest.mark.fault("F110")
@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("task", TASKS)
def test_f110_some_folders_that_somebody_was_at(runs: dict[str, Path], task: str, tmp_path: Path) -> None:
    every = list(tamperings(runs[task]))
    places = rng_for(0, "tampering", task).choice(len(every), QUICK, replace=False)
    assert faults(runs[task], [every[i] for i in sorted(places.tolist())], tmp_path) == []


@pytest.mark.fault("F110")
@pytest.mark.slow
@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("task", TASKS)
def test_f110_all_folders_that_somebody_was_at(runs: dict[str, Path], task: str, tmp_path: Path) -> None:
    assert faults(runs[task], list(tamperings(runs[task])), tmp_path) == []


@pytest.mark.fault("F110")
def test_f110_messages_say_file_key_and_what_to_do(runs: dict[str, Path], tmp_path: Path) -> None:
    said = {
        "run.json: negative at videos": r"run\.json: videos is -1, not at least 0; restore it from a copy, or start",
        "run.json: removed at content.cells.0.cell": r"run\.json: content\.cells\[0\]\.cell is missing; ",
        "scores.json: text at clean": r"scores\.json: clean is the text 'nonsense', not a number; the same",
        "scores.json: a pipe": r"scores\.json: not a regular file; .*the same `jostle run` resumes",
    }
    known = {str(tampering): tampering for tampering in tamperings(runs["detection"])}
    for name, words in said.items():
        run = tmp_path / name.replace(" ", "-").replace(":", "")
        shutil.copytree(runs["detection"], run)
        known[name].do(run / known[name].file)
        with pytest.raises(DataError, match=words) as caught:
            RunRecord.read(run)
        assert caught.value.fault == "F110"
