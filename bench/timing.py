"""What every benchmark shares: its arguments, how time is taken, and how it ends.

Time is taken on one thread, warm, of two contenders by turns; the median counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Work = Callable[[], object]
Clock = Literal["cpu", "wall"]


def hold_to_one_thread() -> None:
    """Tell the pools that listen only at run time."""
    import cv2
    import numba

    cv2.setNumThreads(1)
    numba.set_num_threads(1)


@dataclass(frozen=True)
class Pair:
    """Seconds for one call, ours and the peer's, and how many times longer theirs is; None where there is no peer.

    The ratio is the median of the ratios of single turns, not the ratio of the medians: a turn is short, so
    both halves of it meet the machine in the same mood.
    """

    ours: float
    peer: float | None
    ratio: float | None


def reader(clock: Clock) -> Callable[[], float]:
    """The clock itself.

    `cpu` counts the time of all threads of the process: on one thread it is the wall time of an idle machine,
    other programs do not disturb it, and a pool that slipped past `hold_to_one_thread` is charged for, not
    hidden.
    """
    return time.process_time if clock == "cpu" else time.perf_counter


def by_turns(ours: Work, peer: Work | None, *, repeats: int, clock: Clock) -> Pair:
    """Median seconds of one call of each; the calls alternate so that a slow spell of the machine hits both.

    Call both once beforehand: the first call compiles, reads tables and fills caches.
    """
    now = reader(clock)
    taken: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(repeats):
        for mine, work in ((True, ours), (False, peer)):
            if work is not None:
                begun = now()
                work()
                taken[mine].append(now() - begun)
    ours_s = statistics.median(taken[True])
    if peer is None:
        return Pair(ours_s, None, None)
    ratios = [theirs / mine for mine, theirs in zip(taken[True], taken[False], strict=True)]
    return Pair(ours_s, statistics.median(taken[False]), statistics.median(ratios))


def seconds(work: Work, clock: Clock = "cpu") -> float:
    """What one call takes, once."""
    now = reader(clock)
    begun = now()
    work()
    return now() - begun


def make_parser(doc: str | None, *, strict: str = "exit with 1 when a target is missed") -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark, `--json` and `--strict`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    parser.add_argument("--strict", action="store_true", help=strict)
    return parser


def finish(options: argparse.Namespace, numbers: Any, *, missed: bool = False) -> int:
    """Write the numbers where `--json` asks for it, and return the exit code."""
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return int(options.strict and missed)
