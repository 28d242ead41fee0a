"""Shared parts of the benchmarks: command-line options, timing, and the record at the end.

Contenders are timed alternately on one thread, after a warm-up call of each, and medians are reported.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Work = Callable[[], object]
Clock = Literal["cpu", "wall"]


def limit_threads() -> None:
    """Limit OpenCV, Numba and, if it is imported, PyTorch to one thread; environment variables do not reach them."""
    import cv2
    import numba

    cv2.setNumThreads(1)
    numba.set_num_threads(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@dataclass(frozen=True)
class Comparison:
    """Median seconds of a call of each contender, and how many times longer the peer takes.

    The ratio is the median of the ratios of single turns, not the ratio of the medians: a turn is short, so that the
    load of the machine is the same for both of its halves.
    """

    ours: float
    peer: float
    ratio: float


def clock_function(clock: Clock) -> Callable[[], float]:
    """Return the function that reads a clock, in seconds.

    `cpu` counts the time of all threads of the process: on one thread it is the wall time of an idle machine, other
    programs do not disturb it, and a pool that ignores `limit_threads` is charged for instead of hidden.
    """
    return time.process_time if clock == "cpu" else time.perf_counter


def clock_for(device: str) -> Clock:
    """Return the clock to time a device with: CPU time for a CPU, wall time for a GPU."""
    return "cpu" if device == "cpu" else "wall"


def synchronize(device: str) -> None:
    """Wait until a GPU has finished what is queued; return at once for a CPU."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def make_blocking(work: Callable[[], T], device: str) -> Callable[[], T]:
    """Return a function that calls `work`, waits for the device, and returns the result."""

    def blocking() -> T:
        result = work()
        synchronize(device)
        return result

    return blocking


def time_call(work: Work, clock: Clock = "cpu") -> float:
    """Return the seconds of one call."""
    now = clock_function(clock)
    start = now()
    work()
    return now() - start


def time_median(work: Work, *, repeats: int, clock: Clock) -> float:
    """Return the median seconds of a call.

    Call `work` once beforehand: the first call compiles, reads tables and fills caches.
    """
    return statistics.median(time_call(work, clock) for _ in range(repeats))


def compare(ours: Work, peer: Work, *, repeats: int, clock: Clock) -> Comparison:
    """Time two contenders and compare them; calls alternate, so that a slow period of the machine affects both.

    Call both once beforehand: the first call compiles, reads tables and fills caches.
    """
    turns = [(time_call(ours, clock), time_call(peer, clock)) for _ in range(repeats)]
    ours_s, peer_s = (statistics.median(times) for times in zip(*turns, strict=True))
    return Comparison(ours_s, peer_s, statistics.median(theirs / own for own, theirs in turns))


def make_parser(doc: str | None, *, strict: str = "exit with 1 when a target is missed") -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark, `--json` and `--strict`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
    parser.add_argument("--strict", action="store_true", help=strict)
    return parser


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Add `--device`, either `cpu` or `cuda`, to a parser."""
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))


def print_facts(facts: Mapping[str, str]) -> None:
    """Print the conditions of a measurement, one a line."""
    for name, value in facts.items():
        print(f"{name}: {value}")


def finish(options: argparse.Namespace, numbers: Any, *, missed: bool = False) -> int:
    """Write the numbers to the file of `--json`, if there is one, and return the exit code."""
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return int(options.strict and missed)
