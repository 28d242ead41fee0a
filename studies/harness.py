"""The harness of all studies: grids of runs that resume, records in JSON lines, tables of docs/results/.

A study is a file of settings that names its runs, measures one of them and draws its tables; everything else is here.
A run is a frozen dataclass; a record is a dictionary with the fields of its run under `run`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

STUDIES = Path(__file__).resolve().parent
RESULT_PAGES = STUDIES.parent / "docs" / "results"
CORES = os.cpu_count() or 1

Record = dict[str, Any]
R = TypeVar("R")


@dataclass(frozen=True)
class GridRun:
    """Base of the runs of a study."""

    @property
    def folder(self) -> str:
        """Name of the run's folder: the values of its fields, with a hyphen for everything else."""
        return "".join(letter if letter.isalnum() else "-" for letter in " ".join(map(str, astuple(self))))


def parse_arguments(
    doc: str | None, steps: Sequence[str] = (), *, folder: bool = True, **options: Any
) -> argparse.Namespace:
    """Parse the command line of a study: the folder `work`, which is created, some of the steps, and the options.

    Args:
        folder: whether the study has a folder.
        options: default of each option; a type for one without a default. A tuple takes some of its values, a list any.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if folder:
        parser.add_argument("work", type=Path, help="folder of everything that the study makes")
    if steps:
        parser.add_argument("steps", nargs="+", choices=steps)
    for name, default in options.items():
        settings: dict[str, Any] = {"default": default, "type": type(default), "help": f"default: {default}"}
        if isinstance(default, type):
            settings = {"type": default}
        elif isinstance(default, (tuple, list)):
            settings |= {"nargs": "+", "type": type(default[0])}
            settings |= {"choices": default} if isinstance(default, tuple) else {}
        parser.add_argument("--" + name.replace("_", "-"), **settings)
    arguments = parser.parse_args()
    if folder:
        arguments.work.mkdir(parents=True, exist_ok=True)
    return arguments


def run_grid(
    runs: Iterable[Any],
    measure: Callable[[Any], Record],
    results: Path,
    *,
    at_once: int,
    summarise: Callable[[Record], str],
) -> list[Any]:
    """Measure the runs that the results lack, several at once; each adds a line when it is done.

    A run that fails is reported and does not stop the others.

    Args:
        runs: frozen dataclasses.
        measure: returns the record of one run; pickled for another process.
        summarise: returns what is printed of a record.

    Returns:
        The runs that failed, for `finish`.
    """
    done = {json.dumps(record["run"]) for record in read_records(results)} if results.exists() else set()
    missing = [run for run in dict.fromkeys(runs) if json.dumps(asdict(run)) not in done]
    if not missing:
        return []
    begin, failed = time.monotonic(), []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(at_once, context, initializer=use_one_thread) as pool, results.open("a") as file:
        futures = {pool.submit(measure, run): run for run in missing}
        for count, future in enumerate(as_completed(futures), 1):
            prefix = f"{count}/{len(missing)} {time.monotonic() - begin:.0f} s {futures[future]}"
            error = future.exception()
            if error is not None:
                failed.append(futures[future])
                print(f"{prefix}: {type(error).__name__}: {error}", flush=True)
                continue
            record = future.result()
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"{prefix}: {summarise(record)} ({record['seconds']})", flush=True)
    return failed


def finish(failed: Sequence[Any]) -> None:
    """Exit with a list of the runs that failed, if any did."""
    if failed:
        raise SystemExit(
            "\n".join([f"{len(failed)} runs failed; the same command tries them again:", *map(str, failed)])
        )


def use_one_thread() -> None:
    """Limit torch to one thread: several processes share the machine."""
    import torch

    torch.set_num_threads(1)


def ship_weights(files: Mapping[str, Path], **notes: str) -> None:
    """Copy weights into the package in half precision, under these names and with these notes."""
    import torch

    from jostle.models.checkpoints import read_metadata, read_weights, write_weights
    from jostle.models.weights.shipped import FOLDER

    size = 0
    for name, path in files.items():
        half = {key: value.half() if value.is_floating_point() else value for key, value in read_weights(path).items()}
        assert all(torch.isfinite(value).all() for value in half.values()), f"{path}: too large for half precision"
        out = FOLDER / f"{name}.safetensors"
        write_weights(half, out, metadata=read_metadata(path) | notes)
        size += out.stat().st_size
    print(json.dumps({"files": len(files), "bytes": size}))


def read_records(path: Path) -> list[Record]:
    """Read a file of records, one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def select_records(records: Iterable[Record], **fields: Any) -> list[Record]:
    """Return the records whose runs have these values, by network and seed; a value of None selects all."""
    wanted = {key: value for key, value in fields.items() if value is not None}
    chosen = [record for record in records if wanted.items() <= record["run"].items()]
    return sorted(chosen, key=lambda record: (record["run"].get("network", 0), record["run"]["seed"]))


def spread(values: Iterable[float]) -> str:
    """Format the mean and standard deviation over runs, without a line break."""
    many = np.array(list(values))
    if len(many) == 1:
        return f"{many.mean():.2f}"
    return f"{many.mean():.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{many.std(ddof=1):.2f}"


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    """Format a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fill_tables(study: str, tables: Mapping[str, Callable[[R], str]], page: str, results: R) -> str:
    """Return the page with every `<!-- STUDY: NAME -->` ... `<!-- end -->` filled from the results."""

    def fill(match: re.Match[str]) -> str:
        return f"<!-- {study}: {match[1]} -->\n\n{tables[match[1]](results)}\n\n<!-- end -->"

    return re.sub(rf"<!-- {study}: (\w+) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)
