"""Many runs, several at once, a line of results for each: what is done already is not done again."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def measure_all(
    runs: Iterable[Any],
    measure: Callable[[Any], Record],
    results: Path,
    *,
    at_once: int,
    said: Callable[[Record], str],
) -> list[Any]:
    """Run what the results do not hold yet; each finished run adds a line to them.

    A run that fails is told of and does not take the others along.

    Args:
        runs: frozen dataclasses that say what to do; a record has them under `run`.
        measure: does one; it travels to another process.
        said: what is printed of a record.

    Returns:
        The runs that failed, for `end_with`.
    """
    lines = results.read_text().splitlines() if results.exists() else []
    done = {json.dumps(json.loads(line)["run"]) for line in lines}
    left = [run for run in dict.fromkeys(runs) if json.dumps(asdict(run)) not in done]
    if not left:
        return []
    begun, failed = time.monotonic(), []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(at_once, context, initializer=alone) as pool, results.open("a") as file:
        waiting = {pool.submit(measure, run): run for run in left}
        for count, future in enumerate(as_completed(waiting), 1):
            passed = f"{count}/{len(left)} {time.monotonic() - begun:.0f} s {waiting[future]}"
            error = future.exception()
            if error is not None:
                failed.append(waiting[future])
                print(f"{passed}: {type(error).__name__}: {error}", flush=True)
                continue
            record = future.result()
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"{passed}: {said(record)} ({record['seconds']})", flush=True)
    return failed


def end_with(failed: Sequence[Any]) -> None:
    """Say at the end of a study which of its runs failed, and end so that a script knows."""
    if failed:
        said = f"{len(failed)} runs failed; the same command tries them again:"
        raise SystemExit("\n".join([said, *map(str, failed)]))


def alone() -> None:
    """One thread a process: several share the machine."""
    import torch

    torch.set_num_threads(1)
