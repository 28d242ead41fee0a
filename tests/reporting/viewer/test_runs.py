"""Runs of the viewer: read again where they changed, and by plain keys of their names."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.reporting.viewer.runs import Keys, RunCollection, key_of, run_keys


@pytest.fixture
def folder(runs: dict[str, Path], tmp_path: Path) -> Path:
    return shutil.copytree(runs["detection"], tmp_path / "run")


@pytest.fixture
def collection(folder: Path) -> Iterator[RunCollection]:
    collection = RunCollection([folder])
    yield collection
    collection.close()


def test_a_snapshot_stays_until_the_run_changes(folder: Path, collection: RunCollection) -> None:
    first = collection.run("run")
    assert collection.run("run") is first
    assert first.record.predictions("clean") is first.record.predictions("clean")  # which are read once
    (folder / "predictions" / "freeze-3.json").unlink()
    second = collection.run("run")
    assert second is not first
    assert "freeze-3" in first.cells
    assert "freeze-3" not in second.cells
    assert collection.run("walk") is None


@pytest.mark.fault("F142")
def test_f142_sources_follow_the_current_journal(folder: Path, collection: RunCollection) -> None:
    first = collection.run("run")
    video, path = next(iter(first.record.sources.items()))
    events = (folder / "journal.jsonl").read_text()
    (folder / "journal.jsonl").write_text(events.replace(str(path), "/moved/there.mp4"))
    second = collection.run("run")
    assert second is first  # the analysis is not repeated
    assert second.record.sources[video] == Path("/moved/there.mp4")


NAMES = st.text(st.characters(codec=None), max_size=120) | st.sampled_from(
    ["..", ".", "a/b", "a\\b", "%2e%2e", "\0", ""]
)


@given(st.lists(NAMES, unique=True, max_size=20))
def test_every_name_has_a_plain_unique_key(names: list[str]) -> None:
    keys = Keys(names)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_@+~-]+", keys.of(name))
        assert keys.name(keys.of(name)) == name
    assert len({keys.of(name) for name in names}) == len(names)


def test_unknown_keys_have_no_name() -> None:
    keys = Keys(["a", "../b"])
    assert keys.name("a") == "a"
    for wrong in ("b", "..", "../b", "A", "a ", ""):
        assert keys.name(wrong) is None


def test_plain_id_is_its_own_key() -> None:
    assert key_of("video_test_0000004") == "video_test_0000004"
    assert key_of("thumos14-c-black_frame-1@at-10pct-x5") == "thumos14-c-black_frame-1@at-10pct-x5"


def test_runs_with_equal_names_get_distinct_keys(tmp_path: Path) -> None:
    folders = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "c" / "run"]
    assert run_keys(folders) == {"run": folders[0], "run-2": folders[1], "run-3": folders[2]}
