"""Runs as they lie on the disk: unfinished, changed, gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jostle.errors import DataError
from jostle.reporting.viewer.runs import RunCollection, Snapshot, Unfinished


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no run\.json there; give the folder that `jostle run` wrote"):
        RunCollection([tmp_path])


def test_a_run_under_way_says_how_far_it_is(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    scores = (folder / "scores.json").read_bytes()
    (folder / "scores.json").unlink()
    shelf = RunCollection([folder])
    found = shelf.run("run")
    assert isinstance(found, Unfinished)
    assert (found.done, found.of) == (4, 4)
    (folder / "scores.json").write_bytes(scores)
    assert isinstance(shelf.run("run"), Snapshot)
    shelf.close()


def test_a_snapshot_stays_until_the_run_changes(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    shelf = RunCollection([folder])
    first = shelf.run("run")
    assert isinstance(first, Snapshot)
    assert shelf.run("run") is first
    (folder / "predictions" / "freeze-3.json").unlink()
    second = shelf.run("run")
    assert isinstance(second, Snapshot)
    assert second is not first
    assert "freeze-3" in first.cells
    assert "freeze-3" not in second.cells
    assert shelf.run("walk") is None
    shelf.close()


@pytest.mark.fault("F142")
def test_f142_videos_come_from_where_the_journal_says_now(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    shelf = RunCollection([folder])
    first = shelf.run("run")
    assert isinstance(first, Snapshot)
    video, path = next(iter(first.record.sources.items()))
    events = (folder / "journal.jsonl").read_text()
    (folder / "journal.jsonl").write_text(events.replace(str(path), "/moved/there.mp4"))
    second = shelf.run("run")
    assert second is first  # the analysis need not be made again
    assert second.record.sources[video] == Path("/moved/there.mp4")
    shelf.close()


def test_predictions_are_read_once(runs: dict[str, Path]) -> None:
    shelf = RunCollection([runs["detection"]])
    found = shelf.run("detection")
    assert isinstance(found, Snapshot)
    assert found.record.predictions("clean") is found.record.predictions("clean")
    shelf.close()
