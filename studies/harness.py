"""The harness of all studies: grids of runs that resume, records in JSON lines, tables of docs/results/.

A study names its runs, measures one of them and draws its tables; everything else is here. Its treatments and schedules
are in `settings/STUDY.toml`. A run is a frozen dataclass; a record is a dictionary with the fields of its run under
`run`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass, field
from functools import partial, wraps
from importlib import import_module
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

STUDIES = Path(__file__).resolve().parent
PUPPETS = STUDIES.parent / "puppets" / "src" / "jostle_puppets"  # weights of networks that are trained on them
RESULT_PAGES = STUDIES.parent / "docs" / "results"
CORES = os.cpu_count() or 1

Record = dict[str, Any]
Reduction = Callable[[Sequence[Record]], str]
R = TypeVar("R")
T = TypeVar("T")


def load_settings(study: str) -> dict[str, Any]:
    """Read the settings of a study, `settings/STUDY.toml`."""
    return tomllib.loads((STUDIES / "settings" / f"{study}.toml").read_text(encoding="utf-8"))


TABLE_SETTINGS = load_settings("tables")
NAMES: dict[str, str] = TABLE_SETTINGS["names"]


@dataclass(frozen=True)
class GridRun:
    """Base of the runs of a study."""

    @property
    def folder(self) -> str:
        """Name of the run's folder: the values of its fields, with a hyphen for everything else."""
        return "".join(letter if letter.isalnum() else "-" for letter in " ".join(map(str, astuple(self))))

    def folder_in(self, work: Path) -> Path:
        """Return the path of the run's folder."""
        return work / "runs" / self.folder

    def weights_in(self, work: Path) -> Path:
        """Return the path of the weights that the run trains."""
        return self.folder_in(work) / "last.safetensors"


def merge_settings(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested settings, of which later ones win."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            merged[key] = merge_settings(merged.get(key, {}), value) if isinstance(value, Mapping) else value
    return merged


def list_runs(kind: type[R], /, **values: Iterable[Any]) -> list[R]:
    """Return a run for every combination of values of its fields, of which the last changes fastest."""
    return [kind(**dict(zip(values, combination, strict=True))) for combination in product(*values.values())]


def choose_evenly(items: Sequence[T], count: int | None) -> list[T]:
    """Return so many of the items, evenly over their list; all for None."""
    count = len(items) if count is None else min(count, len(items))
    return [items[number * len(items) // count] for number in range(count)]


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


@dataclass(frozen=True)
class Grid:
    """Step of a study that measures runs.

    Attributes:
        runs: returns the runs, of which options choose some: `--seeds` those whose `seed` is among them.
        measure: returns the record of a run.
        summarise: returns what is printed of a record.
        prepare: called with the `runs` before the first of them, beside processes that earlier steps have started.
        file: name of the records, if it is not that of the study.
    """

    runs: Callable[..., Iterable[Any]]
    measure: Callable[..., Record]
    summarise: Callable[[Record], str]
    prepare: Callable[..., None] | None = None
    file: str | None = None


def run_study(
    doc: str | None,
    file: str,
    steps: Mapping[str, Any],
    derive: Callable[[argparse.Namespace], Mapping[str, Any]] = lambda arguments: {},
    also: Sequence[str] = (),
    **options: Any,
) -> None:
    """Run the steps that the command line names, in the order of the study.

    Functions are called with those values that they have parameters for: the options, `work`, and what is derived from
    them. The last step, `record`, puts the records of WORK beside this file, where tables read them.

    Args:
        file: name of the records; a derived `file` goes before.
        steps: a `Grid` or a function each.
        derive: returns further values, given the options.
        also: names of other files of records that steps write, of which some may not have been written.
        options: of the command line; see `parse_arguments`.
    """
    arguments = parse_arguments(doc, (*steps, "record"), **{"at_once": 1, "results": Path, **options})
    values = {**vars(arguments), **derive(arguments)}
    file = values.get("file", file)
    for name, step in steps.items():
        begin = time.monotonic()
        if name not in arguments.steps:
            continue
        if isinstance(step, Grid):
            runs = [run for run in _bind(step.runs, values)() if _is_chosen(run, arguments, options)]
            results = arguments.results or arguments.work / f"{step.file or file}.jsonl"
            measure = _bind(step.measure, values)
            if step.prepare is not None:
                _bind(step.prepare, {**values, "runs": runs})()
            wait_for_processes()
            finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=step.summarise))
        else:
            _bind(step, values)()
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    wait_for_processes()
    for path in [arguments.work / f"{name}.jsonl" for name in (file, *also) if "record" in arguments.steps]:
        if path.exists():
            shutil.copy(path, STUDIES)


def _bind(function: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function with those of the values that it has parameters for."""
    return partial(function, **{name: values[name] for name in signature(function).parameters if name in values})


def _is_chosen(run: Any, arguments: argparse.Namespace, options: Iterable[str]) -> bool:
    """Return whether the values of a run are among those of the options in the plural, such as `--seeds`."""
    chosen = [(value, getattr(arguments, f"{name}s")) for name, value in asdict(run).items() if f"{name}s" in options]
    lists = [(value, values) for value, values in chosen if isinstance(values, (tuple, list))]
    return all(value in values for value, values in lists if isinstance(value, type(values[0])))


def start_process(function: Callable[..., None], *arguments: Any) -> None:
    """Start a forked process that calls a function; this one goes on, and must not have used a GPU."""
    multiprocessing.get_context("fork").Process(target=function, args=arguments).start()


def wait_for_processes() -> None:
    """Wait for the processes that were started, and exit if one of them fails."""
    for process in multiprocessing.active_children():
        process.join()
        if process.exitcode:
            raise SystemExit(f"{process.name} failed")


def run_module(name: str) -> None:
    """Run the `main` of a module under its own name, so that worker processes can import its functions."""
    import_module(name).main()


def train_run(config: Any, folder: Path, *, one_shape: bool = False) -> Path:
    """Train, or resume a run, and return the path of its weights; its checkpoint is deleted.

    Args:
        one_shape: whether all inputs have one shape, for which cuDNN then searches the fastest convolutions.
    """
    import torch

    import jostle

    torch.backends.cudnn.benchmark = one_shape
    weights = jostle.train(config, folder).weights
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    return weights


def get_device() -> str:
    """Return the device of networks: a GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


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
        measure: returns the record of one run, to which the run and the seconds are added; pickled for another process.
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
        futures = {pool.submit(_measure_timed, measure, run): run for run in missing}
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


def _measure_timed(measure: Callable[[Any], Record], run: Any) -> Record:
    begin = time.monotonic()
    record = {"run": asdict(run), **measure(run)}
    return {**record, "seconds": record.get("seconds", round(time.monotonic() - begin, 1))}


def summarise_cells(
    record: Record, *, index: int | None = None, names: Collection[str] = (), key: str = "cells"
) -> str:
    """Format the clean score of a record and the mean of its corrupted ones, in percent.

    Args:
        index: of the score among those of a cell, where it has several.
        names: corrupted cells; all by default.
        key: of the scores by cell.
    """
    scores = {cell: value if index is None else value[index] for cell, value in record[key].items()}
    clean = record["clean"] if "clean" in record else scores.pop("clean")
    corrupted = np.mean([scores[name] for name in names or scores])
    return f"clean {100 * clean:.2f} corrupted {100 * corrupted:.2f}"


def finish(failed: Sequence[Any]) -> None:
    """Exit with a list of the runs that failed, if any did."""
    if failed:
        raise SystemExit(
            "\n".join([f"{len(failed)} runs failed; the same command tries them again:", *map(str, failed)])
        )


def map_in_processes(
    function: Callable[[T], R], items: Iterable[T], jobs: int | None, *, method: str = "spawn", chunk: int = 1
) -> list[R]:
    """Apply a function to items in several processes, and return the results in order."""
    context, initializer = multiprocessing.get_context(method), use_one_thread if method == "spawn" else None
    with ProcessPoolExecutor(jobs, context, initializer=initializer) as pool:
        return list(pool.map(function, items, chunksize=chunk))


def use_one_thread() -> None:
    """Limit torch and OpenCV to one thread: several processes share the machine."""
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)


def ship_weights(files: Mapping[str, Path], folder: Path = PUPPETS, **notes: str) -> None:
    """Copy weights into a package in half precision, under these names and with these notes."""
    import torch

    from jostle.models.checkpoints import read_metadata, read_weights, write_weights

    size = 0
    for name, path in files.items():
        half = {key: value.half() if value.is_floating_point() else value for key, value in read_weights(path).items()}
        assert all(torch.isfinite(value).all() for value in half.values()), f"{path}: too large for half precision"
        out = folder / f"{name}.safetensors"
        write_weights(half, out, metadata=read_metadata(path) | notes)
        size += out.stat().st_size
    print(json.dumps({"files": len(files), "bytes": size}))


def read_records(path: Path) -> list[Record]:
    """Read a file of records, one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a file of records."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def select_records(records: Iterable[Record], **fields: Any) -> list[Record]:
    """Return the records whose runs have these values, by network and seed; a value of None selects all."""
    required = {key: value for key, value in fields.items() if value is not None}
    chosen = [record for record in records if required.items() <= record["run"].items()]
    return sorted(chosen, key=lambda record: (record["run"].get("network", 0), record["run"]["seed"]))


def spread(values: Iterable[float]) -> str:
    """Format the mean and standard deviation over runs, without a line break."""
    many = np.array(list(values))
    if len(many) == 1:
        return f"{many.mean():.2f}"
    return f"{many.mean():.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{many.std(ddof=1):.2f}"


def with_interval(
    value: float, interval: Iterable[float] | None, form: str = ".1f", ends: str = "", scale: float = 1
) -> str:
    """Format a scaled value, and the ends of its interval if it has one.

    Args:
        ends: format of the ends, if it differs.
    """
    whole = f"{scale * value:{form}}"
    return whole if interval is None else f"{whole} [{', '.join(f'{scale * end:{ends or form}}' for end in interval)}]"


def slashed(values: Iterable[float], digits: int = 1) -> str:
    """Format several numbers in one cell."""
    return " / ".join(f"{value:.{digits}f}" for value in values)


def words(name: str) -> str:
    """Return the name of a corruption or of an error as tables have it."""
    return name.rpartition("/")[2].replace("_", " ")


def over_runs(measure: Callable[[Record], float]) -> Reduction:
    """Return a reduction of records to the mean and standard deviation of a measure."""
    return lambda records: spread(map(measure, records))


def mean_over_runs(*measures: Callable[[Record], float], digits: int = 1) -> Reduction:
    """Return a reduction of records to the means of some measures."""
    return lambda records: slashed([float(np.mean([*map(measure, records)])) for measure in measures], digits)


def count_runs(records: Sequence[Record]) -> str:
    """Format the number of records."""
    return str(len(records))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table(*head: str) -> Callable[[Callable[..., Iterable[Sequence[str]]]], Callable[..., str]]:
    """Decorate a generator of the rows of a table, so that it returns the table with this head in Markdown."""

    def decorate(rows: Callable[..., Iterable[Sequence[str]]]) -> Callable[..., str]:
        @wraps(rows)
        def format_table(*arguments: Any, **options: Any) -> str:
            return markdown_table(head, rows(*arguments, **options))

        return format_table

    return decorate


class Results:
    """Records of all studies: `results.frames` are those of `frames.jsonl`, read when they are first wanted."""

    def __getattr__(self, name: str) -> list[Record]:
        records = read_records(STUDIES / f"{name}.jsonl")
        setattr(self, name, records)
        return records

    def of(self, file: str, **fields: Any) -> list[Record]:
        """Return the records of a file whose runs have these values, by network and seed; None selects all."""
        return select_records(getattr(self, file), **fields)


@dataclass(frozen=True)
class GridTable:
    """Table with a row for each combination of values of a run's fields that was measured.

    Attributes:
        file: name of the records.
        rows: values of each field that names a row.
        columns: head and reduction of the records of a row.
        where: values of other fields.
    """

    file: str
    rows: Mapping[str, Sequence[Any]]
    columns: Sequence[tuple[str, Reduction]]
    where: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, results: Results) -> str:
        lines = []
        for key in product(*self.rows.values()):
            if records := results.of(self.file, **dict(zip(self.rows, key, strict=True)), **self.where):
                cells = [reduce_records(records) for _, reduce_records in self.columns]
                lines.append([*(NAMES.get(part, str(part)) for part in key), *cells])
        heads = [TABLE_SETTINGS["heads"].get(name, name) for name in self.rows]
        return markdown_table([*heads, *(head for head, _ in self.columns)], lines)


def fill_tables(study: str, tables: Mapping[str, Callable[[Results], str]], page: str, results: Results) -> str:
    """Return the page with every `<!-- STUDY: NAME -->` ... `<!-- end -->` filled from the results."""

    def fill(match: re.Match[str]) -> str:
        return f"<!-- {study}: {match[1]} -->\n\n{tables[match[1]](results)}\n\n<!-- end -->"

    return re.sub(rf"<!-- {study}: (\w+) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)
