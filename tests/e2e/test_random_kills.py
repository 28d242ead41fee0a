"""F62: `jostle run` is killed at fifty random moments, and every folder ends in the bytes of an undisturbed run."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from tiny_run import NAMES, Starter, command, content, is_gone, write_folder

from jostle.runs.events import VideoKept
from jostle.runs.journal import read_events
from jostle.seeds import rng_for

KILLS = 50
MOST_STARTS = 150  # in case many come too late
LINES = len(NAMES) + 4  # of a whole journal: videos and cells


def lines_of(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def killed(starter: Starter, out: Path, rng: np.random.Generator) -> bool:
    """Start the run and kill it a random while after a random number of journal lines; False if it was done before."""
    jobs = int(rng.choice([1, 1, 2]))  # a process for each video takes seconds to load
    journal = out / "journal.jsonl"
    begun = lines_of(journal)
    wanted = int(rng.integers(begun, max(LINES, begun + 1)))
    wait_s = float(rng.exponential(0.02)) if wanted else float(rng.uniform(0, 0.5))
    group = starter.start(command(out.name, "-q", jobs=jobs)[3:])
    while not starter.is_done() and not (journal.exists() and lines_of(journal) >= wanted):
        time.sleep(0.001)
    time.sleep(wait_s)
    late = starter.is_done()
    if not late:
        os.kill(group, signal.SIGKILL)
    end = starter.end()
    assert end in ((0, -signal.SIGKILL) if late else (-signal.SIGKILL,)), f"the run ended with {end}"
    assert is_gone(group), "a worker outlived the run"
    return not late


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    started = Starter(write_folder(tmp_path))
    yield started
    started.close()


@pytest.mark.slow
def test_f62_fifty_random_kills(starter: Starter, tmp_path: Path) -> None:
    starter.start(command("whole", "-q", jobs=1)[3:])
    assert starter.end() == 0
    known = content(tmp_path / "whole")
    rng = rng_for(0, "kills")
    kills = folders = 0
    for start in range(MOST_STARTS):
        out = tmp_path / f"run-{folders}"
        if killed(starter, out, rng):
            kills += 1
            if kills < KILLS and rng.random() < 0.75:
                continue  # kill the same run again
            starter.start(command(out.name, "-q", jobs=1)[3:])
            assert starter.end() == 0
        assert content(out) == known, f"folder {folders} after {kills} kills in {start + 1} starts"
        assert not list(out.rglob(".*")), "something half-written is left"
        looked_at = [event.video for event in read_events(out / "journal.jsonl") if isinstance(event, VideoKept)]
        assert set(looked_at) == set(NAMES)
        folders += 1
        if kills >= KILLS:
            break
    assert kills >= KILLS
    starter.start(["verify", out.name])
    assert starter.end() == 0
