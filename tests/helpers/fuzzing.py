"""Runs the inputs of readers in processes of their own, and starts another where one hangs or dies."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

CHILD = Path(__file__).resolve().parent / "child.py"
SECONDS = 10.0  # that an input may take
ENOUGH = 20  # findings, to be fixed before more are searched for
START_SECONDS = 120.0  # until the first input: imports, and the making of sound files


@dataclass
class Findings:
    """Outcomes of damaged inputs.

    Attributes:
        counts: how many were read, and how many refused.
        bad: what went wrong, each with the command that shows it again.
        slowest: the longest that an input took, in seconds.
    """

    counts: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def note(self, begun: dict[str, Any], outcome: str) -> None:
        number = begun["number"]
        again = f'python tests/helpers/child.py {number} {number + 1} "{begun["reader"]}"'
        self.bad.append(f"{again}  ({begun['name']}, {begun['size']} bytes): {outcome}")


def run(readers: Sequence[str], count: int) -> Findings:
    """Give each reader its first `count` inputs; enough findings end it."""
    found = Findings()
    left, first = list(readers), 0
    while left and len(found.bad) < ENOUGH:
        reader, first = _batch(left, first, count, found)
        left = left[left.index(reader) :]
        if first >= count:
            left, first = left[1:], 0
    return found


def _batch(readers: Sequence[str], first: int, last: int, found: Findings) -> tuple[str, int]:
    """Let one process read until it is done, hangs or dies; gives the reader it came to, and its next input."""
    command = [sys.executable, str(CHILD), str(first), str(last), *readers]
    reader = readers[0]
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as folder,  # gone afterwards, even if the process could not tidy up
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=os.environ | {"TMPDIR": folder}) as child,
    ):
        assert child.stdout is not None
        lines = _Lines(child.stdout)
        begun: dict[str, Any] | None = None
        try:
            while (line := lines.next(START_SECONDS if begun is None else SECONDS)) is not None:
                if "outcome" not in line:
                    begun, reader, first = line, line["reader"], line["number"]
                    continue
                assert begun is not None
                found.slowest = max(found.slowest, line["seconds"])
                if line["outcome"] in ("read", "refused"):
                    found.counts[line["outcome"]] += 1
                else:
                    found.note(begun, line["outcome"])
                begun, first = None, first + 1
                if len(found.bad) >= ENOUGH:
                    child.kill()
                    return reader, first
        except TimeoutError:
            child.kill()
            assert begun is not None, f"{reader}: no input was begun in {START_SECONDS:g} s"
            found.note(begun, f"no answer in {SECONDS:g} s")
            return reader, first + 1
        status = child.wait()
        if begun is not None:  # the process died over it
            found.note(begun, f"the process ended with {status}")
            return reader, first + 1
        if status:
            errors.seek(0)
            raise AssertionError(f"{reader}: the child failed: {errors.read()[-2000:].decode('utf-8', 'replace')}")
    return reader, first


class _Lines:
    """Lines of JSON from a process, each waited for no longer than it may take."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._handle = pipe.fileno()
        self._pipe = pipe
        self._held = b""

    def next(self, seconds: float) -> dict[str, Any] | None:
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
        made: dict[str, Any] = json.loads(line)
        return made
