"""Run collections of the viewer: runs that are unfinished, changed or missing on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jostle.reporting.viewer.runs import RunCollection, Snapshot


def test_a_snapshot_stays_until_the_run_changes(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    collection = RunCollection([folder])
    first = collection.run("run")
    assert isinstance(first, Snapshot)
    assert collection.run("run") is first
    (folder / "predictions" / "freeze-3.json").unlink()
    second = collection.run("run")
    assert isinstance(second, Snapshot)
    assert second is not first
    assert "freeze-3" in first.cells
    assert "freeze-3" not in second.cells
    assert collection.run("walk") is None
    collection.close()


@pytest.mark.fault("F142")
def test_f142_sources_follow_the_current_journal(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    collection = RunCollection([folder])
    first = collection.run("run")
    assert isinstance(first, Snapshot)
    video, path = next(iter(first.record.sources.items()))
    events = (folder / "journal.jsonl").read_text()
    (folder / "journal.jsonl").write_text(events.replace(str(path), "/moved/there.mp4"))
    second = collection.run("run")
    assert second is first  # the analysis is not repeated
    assert second.record.sources[video] == Path("/moved/there.mp4")
    collection.close()


def test_predictions_are_read_once(runs: dict[str, Path]) -> None:
    collection = RunCollection([runs["detection"]])
    snapshot = collection.run("detection")
    assert isinstance(snapshot, Snapshot)
    assert snapshot.record.predictions("clean") is snapshot.record.predictions("clean")
    collection.close()
