"""Run folders and a record that an earlier version wrote: they are read, and resume to the same bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.synthetic_runs import CELLS, FACTS, finished_run
from jostle.core.environment import library_versions

FOLDER = Path(__file__).with_name("runs")
RECORD = FOLDER / "record.json"
CLEAN_AND_TWO = CELLS[:2]
HERE = "@HERE@"  # in place of the folder that a run was written in


def write(folder: Path, task: str) -> Path:
    """Write a run of the present version."""
    return finished_run(folder / task, task, videos=3, cells=CLEAN_AND_TWO).folder


def texts(run: Path) -> Iterator[Path]:
    """Files of a run that name folders or versions."""
    yield from (run / name for name in ("journal.jsonl", "run.json"))


def keep(run: Path) -> None:
    """Put a run among the golden files."""
    kept = FOLDER / run.name
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(run, kept)
    for path in texts(kept):
        path.write_text(path.read_text().replace(str(run.parent), HERE))


def restore(task: str, folder: Path) -> Path:
    """Copy a golden run into a folder, as if it had been written there by the libraries that are installed."""
    run = folder / task
    shutil.copytree(FOLDER / task, run)
    for path in texts(run):
        path.write_text(path.read_text().replace(HERE, str(folder)))
    about = json.loads((run / "run.json").read_text())
    versions = json.dumps(library_versions(), indent=1).replace("\n", "\n ")
    was = json.dumps(about["versions"], indent=1).replace("\n", "\n ")
    text = (run / "run.json").read_text()
    assert was in text
    (run / "run.json").write_text(text.replace(was, versions))
    return run


@pytest.fixture(scope="module", autouse=True)
def update(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Write the golden files anew, if asked for."""
    if not request.config.getoption("--update-golden"):
        return
    folder = tmp_path_factory.mktemp("golden")
    for task in FACTS:
        keep(write(folder, task))
    jostle.export_run(folder / "detection", RECORD, draws=100)


def contents(run: Path) -> dict[str, Any]:
    """What is in the files of a run but its journal, to which each call adds; scores to twelve digits."""
    files = (path for path in sorted(run.rglob("*")) if path.is_file() and path.name != "journal.jsonl")
    return {path.relative_to(run).as_posix(): content(path) for path in files}


def content(path: Path) -> Any:
    if path.name in ("scores.json", "diagnosis.json"):
        return json.loads(path.read_text(), parse_float=lambda text: f"{float(text):.12g}")
    return path.read_bytes()


@pytest.mark.parametrize("task", FACTS)
def test_an_old_run_resumes_to_the_same_bytes(task: str, tmp_path: Path) -> None:
    run = restore(task, tmp_path)
    before = contents(run)
    lost = [
        run / "scores.json",
        run / "truth.json",
        *run.glob("predictions/*black_frame-3*"),
        *run.glob("diagnosis.json"),
    ]
    for path in lost:
        path.unlink()
    times = {path.name: path.stat().st_mtime_ns for path in run.glob("videos/*")}
    write(tmp_path, task)
    assert {path.name: path.stat().st_mtime_ns for path in run.glob("videos/*")} == times  # nothing was computed again
    assert contents(run) == before


@pytest.mark.parametrize("task", FACTS)
def test_an_old_run_is_reported(task: str, tmp_path: Path) -> None:
    run = restore(task, tmp_path)
    page = jostle.report(run, tmp_path / "report.html", draws=20)
    assert "guesser" in page.read_text()


def test_an_old_record_stands_on_a_board_beside_a_run(tmp_path: Path) -> None:
    other = finished_run(tmp_path / "other", "detection", videos=3, cells=CLEAN_AND_TWO, model="other").folder
    jostle.board([RECORD, other], tmp_path / "board", draws=100)
    (board,) = json.loads((tmp_path / "board" / "board.json").read_text())["boards"]
    (table,) = board["tables"]
    assert {row["model"] for row in table["rows"]} == {"guesser", "other"}
