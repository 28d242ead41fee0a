"""Runs the inputs of a reader in processes of their own, and starts another where one hangs or dies."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

CHILD = Path(__file__).resolve().parent / "child.py"
SECONDS = 10.0  # that an input may take
START_SECONDS = 120.0  # until the first input: imports, and the making of sound files


@dataclass
class Findings:
    """What became of the inputs of a reader.

    Attributes:
        counts: how many were read, and how many refused.
        bad: what went wrong, each with the command that shows it again.
        slowest: the longest that an input took, in seconds.
    """

    counts: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def note(self, reader: str, begun: dict[str, object], outcome: str) -> None:
        again = f'python tests/fuzz/child.py "{reader}" {begun["number"]}'
        self.bad.append(f"{again}  ({begun['name']}, {begun['size']} bytes): {outcome}")


def run(reader: str, first: int, last: int, *, most_bad: int = 20) -> Findings:
    """Give a reader its inputs from `first` up to `last`; stops once there are `most_bad` findings."""
    found = Findings()
    while first < last and len(found.bad) < most_bad:
        first = _batch(reader, first, last, found)
    return found


def _batch(reader: str, first: int, last: int, found: Findings) -> int:
    """Let one process read until it is done, hangs or dies; gives the number of the next input."""
    command = [sys.executable, str(CHILD), reader, str(first), str(last)]
    with (
        tempfile.TemporaryFile() as told,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told) as child,
    ):
        assert child.stdout is not None
        lines = _Lines(child.stdout)
        begun: dict[str, object] | None = None
        wait = START_SECONDS
        try:
            while (line := lines.next(wait)) is not None:
                if "outcome" not in line:
                    begun, wait = line, SECONDS
                    continue
                assert begun is not None
                first, outcome, seconds = int(begun["number"]) + 1, line["outcome"], line["seconds"]  # type: ignore[call-overload]
                found.slowest = max(found.slowest, seconds)
                if outcome in ("read", "refused"):
                    found.counts[outcome] += 1
                else:
                    found.note(reader, begun, outcome)
                begun, wait = None, SECONDS
        except TimeoutError:
            child.kill()
            assert begun is not None, f"{reader}: no input was begun in {wait:g} s"
            found.note(reader, begun, f"no answer in {SECONDS:g} s")
            return int(begun["number"]) + 1  # type: ignore[call-overload]
        status = child.wait()
        if begun is not None:  # the process died over it
            found.note(reader, begun, f"the process ended with {status}")
            return int(begun["number"]) + 1  # type: ignore[call-overload]
        if status:
            told.seek(0)
            raise AssertionError(f"{reader}: the child failed: {told.read()[-2000:].decode('utf-8', 'replace')}")
    return first


class _Lines:
    """Lines of JSON from a process, each waited for no longer than it may take."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._handle = pipe.fileno()
        self._pipe = pipe
        self._held = b""

    def next(self, seconds: float) -> dict[str, object] | None:
        """The next line, None at the end."""
        until = time.monotonic() + seconds
        while b"\n" not in self._held:
            if not select.select([self._handle], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError
            piece = self._pipe.read1(65536)  # type: ignore[attr-defined]
            if not piece:
                return None
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        made: dict[str, object] = json.loads(line)
        return made
