"""Two processes at once in one folder: both succeed, or one is refused as the folder is in use (F115)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_random_kills import VERBS, whole_files, write_sources

from helpers.started import Starter
from helpers.tiny_run import NAMES, command, content, starter_in

EXCLUSIVE = ("run", "train")  # verbs that write sequentially, so a second process is refused


@pytest.fixture
def starters(tmp_path: Path) -> Iterator[list[Starter]]:
    write_sources(tmp_path)
    processes = [starter_in(tmp_path), starter_in(tmp_path)]
    yield processes
    for process in processes:
        process.close()


@pytest.mark.fault("F115")
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["run", *sorted(VERBS)])
def test_f115_two_processes_in_one_folder(starters: list[Starter], tmp_path: Path, verb: str) -> None:
    def words(out: str) -> list[str]:
        if verb == "run":
            return command(out, "-q", jobs=1)[3:]
        return [*VERBS[verb], out, *([] if verb == "train" else ["-j", "1"])]

    read = content if verb == "run" else whole_files
    ends = []
    for folder in ("whole", "warm"):
        starters[folder == "warm"].start(words(folder))
        assert starters[folder == "warm"].end() == 0
    for attempt in range(3):
        out = f"both-{attempt}"
        for one in starters:
            one.start(words(out))
        ends = sorted(one.end() for one in starters)
        assert ends == ([0, 5] if verb in EXCLUSIVE else [0, 0])
        assert read(tmp_path / out) == read(tmp_path / "whole")


@pytest.mark.fault("F115")
@pytest.mark.slow
def test_f115_two_processes_with_different_videos(starters: list[Starter], tmp_path: Path) -> None:
    _, _, *words = VERBS["extract"]
    for attempt in range(3):
        out = f"both-{attempt}"
        for one, name in zip(starters, NAMES, strict=False):
            one.start(["extract", f"data/{name}.mkv", *words, out])
        assert [one.end() for one in starters] == [0, 0]
        listed = json.loads((tmp_path / out / "features.json").read_text())
        assert {*listed["videos"]} == {*NAMES[:2]}
