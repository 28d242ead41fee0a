"""Verbs that are killed at random moments resume: `run`, `build`, `extract`, `train`, `build --clean` (F62, F112).

Every folder ends with the bytes of an uninterrupted run, and no partial file has a final name.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.test_detecting_cli import CONFIG

from helpers.small_world import write_world
from helpers.started import Starter
from helpers.tiny_run import NAMES, command, content, is_gone, starter_in, write_folder
from jostle.core.random import rng_for
from jostle.evaluation.run_folder.journal import VideoKept, read_events

KILLS = {"run": 50, "build": 20, "extract": 20, "train": 20, "build --clean": 20}
LINES = len(NAMES) + 4  # of a complete journal: videos and cells
VERBS = {
    "build": ["build", "tiny-c.toml", "--data", "data", "-q", "-o"],
    "extract": ["extract", "data", "--extractor", "puppet_net", "--keep-frames", "--device", "cpu", "-q", "-o"],
    "train": ["train", "train.toml", "-q", "-o"],
    "build --clean": ["build", "few-clips", "--clean", "-q", "-o"],
}
VOLATILE = "manifest.jsonl"  # depends on the order of work, and has times


def lines_of(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def start_and_kill(starter: Starter, words: list[str], is_time: Callable[[], bool]) -> bool:
    """Start a command and kill it when it is time; return False if it ended before."""
    group = starter.start(words)
    while not starter.is_done() and not is_time():
        time.sleep(0.001)
    if not starter.is_done():
        os.kill(group, signal.SIGKILL)
    end = starter.end()
    assert end in (0, -signal.SIGKILL), f"{words[0]} ended with {end}"
    assert is_gone(group), f"a worker outlived {words[0]}"
    return end != 0


def after_lines(journal: Path, rng: np.random.Generator) -> Callable[[], bool]:
    """Return a predicate that holds a random time after a random number of journal lines."""
    first = lines_of(journal)
    count = int(rng.integers(first, max(LINES, first + 1)))
    wait_s = float(rng.exponential(0.02)) if count else float(rng.uniform(0, 0.5))
    reached_at: list[float] = []

    def is_time() -> bool:
        if not reached_at and journal.exists() and lines_of(journal) >= count:
            reached_at.append(time.monotonic())
        return bool(reached_at) and time.monotonic() - reached_at[0] >= wait_s

    return is_time


def after_seconds(most: float, rng: np.random.Generator) -> Callable[[], bool]:
    wait_s, begun = float(rng.uniform(0, most)), time.monotonic()
    return lambda: time.monotonic() - begun >= wait_s


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    process = starter_in(write_sources(tmp_path))
    yield process
    process.close()


def write_sources(root: Path) -> Path:
    """Write the input of all verbs: annotated videos, a benchmark, features and a configuration."""
    write_folder(root)
    write_world(root / "world")
    (root / "train.toml").write_text(CONFIG.replace('"clean"', '"world/clean"').replace('"truth', '"world/truth'))
    return root


def whole_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file that has its final name."""
    files = [path for path in folder.rglob("[!.]*") if path.is_file() and path.name != VOLATILE]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.fault("F62")
@pytest.mark.slow
def test_f62_fifty_random_kills(starter: Starter, tmp_path: Path) -> None:
    starter.start(command("whole", "-q", jobs=1)[3:])
    assert starter.end() == 0
    expected = content(tmp_path / "whole")
    rng = rng_for(0, "kills")
    kills = folders = 0
    for start in range(3 * KILLS["run"]):
        out = tmp_path / f"run-{folders}"
        jobs = int(rng.choice([1, 1, 2]))  # a process per video takes seconds to start
        if start_and_kill(starter, command(out.name, "-q", jobs=jobs)[3:], after_lines(out / "journal.jsonl", rng)):
            kills += 1
            if kills < KILLS["run"] and rng.random() < 0.75:
                continue  # kill the same run again
            starter.start(command(out.name, "-q", jobs=1)[3:])
            assert starter.end() == 0
        assert content(out) == expected, f"folder {folders} after {kills} kills in {start + 1} starts"
        assert not list(out.rglob(".*")), "something half-written is left"
        events = read_events(out / "journal.jsonl")
        assert {event.video for event in events if isinstance(event, VideoKept)} == set(NAMES)
        folders += 1
        if kills >= KILLS["run"]:
            break
    assert kills >= KILLS["run"]
    starter.start(["check", out.name])
    assert starter.end() == 0


@pytest.mark.fault("F112")
@pytest.mark.slow
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_f112_twenty_random_kills(starter: Starter, tmp_path: Path, verb: str) -> None:
    def words(out: Path, jobs: int = 1) -> list[str]:
        return [*VERBS[verb], out.name, *([] if verb == "train" else ["-j", str(jobs)])]

    for name in ("warm", "whole"):  # the first run also fills the compilation cache
        started = time.monotonic()
        starter.start(words(tmp_path / name))
        assert starter.end() == 0
        took_s = time.monotonic() - started
    expected = whole_files(tmp_path / "whole")
    assert whole_files(tmp_path / "warm") == expected
    rng = rng_for(0, "kills", verb)
    kills = folders = 0
    for start in range(4 * KILLS[verb]):
        out = tmp_path / f"{verb.split()[0]}-{folders}"
        jobs = int(rng.choice([1, 1, 1, 2]))
        if start_and_kill(starter, words(out, jobs), after_seconds(took_s, rng)):
            kills += 1
            changed = {name for name, data in whole_files(out).items() if expected.get(name) != data}
            assert changed <= GROWING[verb], "a file that is not whole has its final name"
            if kills < KILLS[verb] and rng.random() < 0.6:
                continue
            starter.start(words(out))
            assert starter.end() == 0
        assert whole_files(out) == expected, f"folder {folders} after {kills} kills in {start + 1} starts"
        folders += 1
        if kills >= KILLS[verb]:
            break
    assert kills >= KILLS[verb]


# Files that are rewritten or appended to during work, atomically each time.
GROWING = {
    "build": set(),
    "extract": {"features.json"},
    "train": {"log.jsonl", "checkpoint.safetensors", "best.safetensors"},
    "build --clean": set(),
}
