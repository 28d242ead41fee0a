"""Runs a detection benchmark on one machine, into a folder that survives being killed.

Videos are the items. What is found in one, in all cells it lacks, goes into a file of its own and a line of the
journal; when all are done, each cell's predictions are put together in the order of the annotations. So neither the
order of work, nor the number of processes, nor an interruption shows in the result.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jostle.benchmarks.recipe import CLEAN, Cell, Recipe
from jostle.datasets.dataset import Dataset
from jostle.datasets.files import read_predictions, write_predictions
from jostle.datasets.names import file_name_for, refuse_collisions
from jostle.datasets.writing import write_text
from jostle.errors import BadValue, DataError, JostleError
from jostle.evaluation.run_state import (
    RESULTS,
    Plan,
    State,
    kept_results,
    planned,
    results_file,
    source_of,
    written_segments,
)
from jostle.evaluation.sweep import Models, Order, Result, looked_at
from jostle.evaluation.video_results import write_results
from jostle.extraction.engine import Cost
from jostle.extraction.store import file_fingerprint
from jostle.metrics.robustness import robustness
from jostle.metrics.score import score
from jostle.runs.folder import FORMAT, Origin, RunFolder
from jostle.runs.journal import Event, Journal, read_events
from jostle.types.predictions import Predictions
from jostle.types.segments import Segments

Progress = Callable[[int, int], None]
VERSIONS = ("jostle", "numpy", "av", "opencv-python-headless", "torch")


@dataclass(frozen=True)
class Run:
    """What a run has come to.

    Attributes:
        folder: where everything lies.
        scores: the content of scores.json.
        failures: videos that could not be used, and why.
        clean: what the clean videos cost this time.
        cells: what all other cells cost on top this time.
    """

    folder: Path
    scores: dict[str, Any]
    failures: tuple[dict[str, str], ...]
    clean: Cost
    cells: Cost


@dataclass(frozen=True)
class Contestant:
    """The model that is run, and what it is known by.

    Attributes:
        load: gives extractor and detector, in every process once.
        model: the name of the detector, which `load` gives it under.
        weights: fingerprint of its weights.
        extractor: the name of what makes its features.
        extractor_weights: fingerprint of those weights.
    """

    load: Callable[[], Models]
    model: str
    weights: str | None
    extractor: str
    extractor_weights: str | None


def run_detection(
    recipe: Recipe,
    data: Dataset,
    contestant: Contestant,
    out: Path,
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    jobs: int = 1,
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Run a benchmark in a folder, or what is left of it there.

    Args:
        cells: those to do; what the folder has of others stays, and is scored with them.
        jobs: videos at once, each in a process of its own.
        retry_failed: look again at videos that could not be used.
        progress: told of videos.

    Raises:
        SourceChanged: if the folder holds a run of something else.
        ResourceError: if the disk is full; what is finished stays.
        DataError: if none of the videos could be used.
    """
    folder, origin = RunFolder(out), _origin(recipe, data, contestant, seed)
    refuse_collisions([file_name_for(name, RESULTS) for name in data.videos], str(out))
    _begin(folder, origin, data)
    with Journal(folder.journal) as journal:
        for path in folder.leftovers():
            with contextlib.suppress(OSError):
                path.unlink()
        state = State.of(journal.events)
        plan = planned(folder, state, recipe, data, cells, seed=seed, retry_failed=retry_failed)
        spent = [Cost(), Cost()]

        def note(event: Event) -> None:
            journal.note(event)
            state.add(event)

        with closing(looked_at(plan.orders, contestant.load, jobs)) as results:
            for done, (order, result) in enumerate(results, 1):
                _keep(folder, state, order, result, contestant.model, note)
                if not isinstance(result, JostleError):
                    spent = [spent[0] + result[1], spent[1] + result[2]]
                if progress is not None:
                    progress(done, len(plan.orders))
        failures = _write_failures(folder, state, data)
        names = _write_predictions(folder, state, plan, data, note)
        if not names:
            why = failures[0]["message"] if failures else "no annotated video is there"
            raise DataError(
                f"none of {len(data.videos)} videos could be used: {why}; when that is mended, run with --retry-failed"
            )
        scores = _write_scores(folder, recipe, plan, data, names, contestant.model)
    return Run(out, scores, failures, *spent)


def plan_detection(
    recipe: Recipe,
    data: Dataset,
    contestant: Contestant,
    out: Path,
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    retry_failed: bool = False,
) -> Plan:
    """What `run_detection` would do; nothing is written."""
    folder = RunFolder(out)
    folder.check(_origin(recipe, data, contestant, seed))
    state = State.of(read_events(folder.journal))
    return planned(folder, state, recipe, data, cells, seed=seed, retry_failed=retry_failed)


def _origin(recipe: Recipe, data: Dataset, contestant: Contestant, seed: int) -> Origin:
    if recipe.task != "detection":
        raise BadValue(f"{recipe.name} is a benchmark of {recipe.task}; only those of detection can be run so far")
    return Origin(
        recipe.name,
        recipe.fingerprint,
        recipe.content(),
        contestant.model,
        contestant.weights,
        contestant.extractor,
        contestant.extractor_weights,
        seed,
        data.name,
        data.subset,
        data.truth.fingerprint,
        tuple(data.missing),
    )


def _begin(folder: RunFolder, origin: Origin, data: Dataset) -> None:
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        if not folder.check(origin):
            if any(not path.name.startswith(".") for path in folder.path.iterdir()):
                raise DataError(f"{folder.path}: holds something that is no run; name a new or an empty folder")
            about = {"format": FORMAT, **origin.to_dict(), "videos": len(data.truth.videos), "versions": _versions()}
            write_text(folder.about, [json.dumps(about, indent=1), "\n"])
        for inner in (folder.predictions, folder.videos):
            inner.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder.path}: cannot be used ({error.strerror}); name another folder") from None


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _keep(
    folder: RunFolder, state: State, order: Order, result: Result, model: str, note: Callable[[Event], None]
) -> None:
    """Put the results of a video where a killed process does not take them along: first the file, then the line."""
    if isinstance(result, JostleError):
        said = {"error": type(result).__name__, "message": str(result), "fault": result.fault}
        note({"event": "failed", "video": order.name, **said})
        return
    found, clean, others = result
    wanted = {cell.name: found[model][cell.name] for cell in order.cells}
    together = kept_results(folder, state, order.name) | wanted
    checksum = write_results(results_file(folder, order.name), together)
    costs = {"clean": asdict(clean), "cells": asdict(others)}
    note({"event": "video", "video": order.name, "sha256": checksum, **source_of(order.path), "cost": costs})


def _write_failures(folder: RunFolder, state: State, data: Dataset) -> tuple[dict[str, str], ...]:
    failures = tuple(
        {key: state.failed[name][key] for key in ("video", "error", "message", "fault")}
        for name in data.videos
        if name in state.failed
    )
    write_text(folder.failures, [json.dumps(failure) + "\n" for failure in failures])
    return failures


def _write_predictions(
    folder: RunFolder, state: State, plan: Plan, data: Dataset, note: Callable[[Event], None]
) -> list[str]:
    """Put together the cells that lack a file or a video; gives the videos that are in every cell."""
    names = [name for name in data.truth.videos if name in data.videos and name not in state.failed]
    for cell in plan.cells if names else ():
        if plan.there.get(cell.name) == frozenset(names):
            continue
        path = folder.predictions_of(cell.slug)
        before = written_segments(path) if cell.name in plan.there else {}
        found: dict[str, Segments] = {}
        for name in names:
            found[name] = before[name] if name in before else kept_results(folder, state, name)[cell.name]
        # The journal knows the file before it has its name, so that whatever has the name is known.
        new = path.with_name(f".{path.stem}.new.json")
        write_predictions(Predictions.from_segments(found), new)
        note({"event": "cell", "cell": cell.name, "sha256": file_fingerprint(new), "videos": names})
        os.replace(new, path)
    return names


def _write_scores(
    folder: RunFolder, recipe: Recipe, plan: Plan, data: Dataset, names: list[str], model: str
) -> dict[str, Any]:
    assert recipe.protocol is not None
    truth = data.truth.of_videos(names)
    values = {}
    for cell in plan.cells:
        found = read_predictions(folder.predictions_of(cell.slug))
        values[cell.name] = score(found, truth, protocol=recipe.protocol, tious=recipe.tious).average_map
    counted = {cell.name: values[cell.name] for cell in plan.cells if cell.counted}
    told: dict[str, Any] = {"format": FORMAT, "benchmark": recipe.name, "model": model, "metric": recipe.measure}
    told |= robustness(values[CLEAN], counted, families=recipe.families, percent=False).to_dict()
    coverage = {"videos": len(names), "of": len(data.truth.videos)}
    told["cells"] = [cell | coverage for cell in told["cells"]]
    told["beside"] = [
        {"cell": cell.name, "value": values[cell.name], **coverage}
        for cell in plan.cells
        if not cell.counted and cell.name != CLEAN
    ]
    told["counted"] = {"cells": len(counted), "of": sum(cell.counted for cell in recipe.cells)}
    write_text(folder.scores, [json.dumps(told, indent=1), "\n"])
    return told
