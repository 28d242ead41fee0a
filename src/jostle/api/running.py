"""Benchmarks: run one on a model, see what would be done, check what was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.data import load_dataset
from jostle.api.detecting import load_detector, load_extractor, name_classes, need_torch
from jostle.errors import BadValue
from jostle.shipped import TREATMENTS, detector_weights, shipped_names, weights_file
from jostle.types.truth import Truth
from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.evaluation.run_check import Checked
    from jostle.evaluation.run_state import Plan
    from jostle.evaluation.runner import Run
    from jostle.evaluation.sweep import Models

Progress = Callable[[int, int], None]


def run(
    benchmark: str | Path,
    *,
    model: str,
    data: str | Path | None = None,
    out: str | Path,
    engine: str = "local",
    jobs: int | None = None,
    weights: str | Path | None = None,
    extractor: str | None = None,
    extractor_weights: str | Path | None = None,
    cells: Iterable[str] | None = None,
    seed: int = 0,
    retry_failed: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
) -> Run:
    """Run a detection benchmark on a registered detector. A run that was stopped in `out` goes on to the same bytes.

    Args:
        benchmark: one of `jostle names benchmarks`, or a TOML file.
        model: one of `jostle names detectors`.
        data: the folder of the data set; None for one that is made.
        out: the run folder. Deleting a predictions file there makes the next run do that cell again.
        engine: `local`, this machine.
        jobs: videos at once; by default one a core, on a GPU one. The result does not depend on it.
        weights: the detector's; for the `_puppets` variants also `clean` or `robust`.
        extractor: makes features; by default the one that the weights were trained on.
        extractor_weights: its checkpoint, if not the one that comes with jostle.
        cells: as `select_cells` takes them; by default all that count.
        retry_failed: look again at videos that could not be used.
        device: `auto`, `cpu` or `cuda`.
        progress: called with (videos done, videos to do).

    Raises:
        SourceChanged: if `out` holds a run of another benchmark, model, data or seed; the message says what differs.
        DataError: if none of the videos could be used. Single ones are listed in `Run.failures`.
    """
    from jostle.evaluation.runner import run_detection

    if engine != "local":
        raise BadValue(f"engine must be 'local', got {engine!r}; a cluster cannot be used so far")
    asked = _asked(benchmark, model, data, weights, extractor, extractor_weights, cells, seed, device)
    on_cpu = asked.pop("device") == "cpu"
    many = jobs if jobs is not None else cores() if on_cpu else 1
    if many < 1:
        raise BadValue(f"jobs must be at least 1, got {many}")
    return run_detection(**asked, out=Path(out), seed=seed, jobs=many, retry_failed=retry_failed, progress=progress)


def plan(
    benchmark: str | Path,
    *,
    model: str,
    data: str | Path | None = None,
    out: str | Path,
    weights: str | Path | None = None,
    extractor: str | None = None,
    extractor_weights: str | Path | None = None,
    cells: Iterable[str] | None = None,
    seed: int = 0,
    retry_failed: bool = False,
    device: str = "auto",
) -> Plan:
    """What `run` would do with the same arguments; the run folder is left as it is."""
    from jostle.evaluation.runner import plan_detection

    asked = _asked(benchmark, model, data, weights, extractor, extractor_weights, cells, seed, device)
    del asked["device"]
    return plan_detection(**asked, out=Path(out), seed=seed, retry_failed=retry_failed)


def verify(folder: str | Path) -> Checked:
    """Check a run folder: are files what the run wrote, is any cell or video lacking?

    Raises:
        DataError: if it is no run folder.
    """
    from jostle.evaluation.run_check import check_run

    return check_run(Path(folder))


def _asked(
    benchmark: str | Path,
    model: str,
    data: str | Path | None,
    weights: str | Path | None,
    extractor: str | None,
    extractor_weights: str | Path | None,
    cells: Iterable[str] | None,
    seed: int,
    device: str,
) -> dict[str, Any]:
    """Everything that names stand for, checked before any work is done."""
    need_torch("detectors")
    from jostle.benchmarks.reading import load_benchmark
    from jostle.benchmarks.selection import select_cells
    from jostle.detectors.checkpoints import read_metadata
    from jostle.detectors.detector import detectors
    from jostle.detectors.devices import device_for
    from jostle.evaluation.runner import Contestant
    from jostle.extraction.store import file_fingerprint

    recipe = load_benchmark(benchmark)
    if recipe.task != "detection":
        raise BadValue(f"{recipe.name} is a benchmark of {recipe.task}; only those of detection can be run so far")
    chosen = select_cells(recipe, cells)
    detectors[model]
    if weights is None:
        hint = f"; {' or '.join(TREATMENTS)} come with jostle" if f"{model}-{TREATMENTS[0]}" in shipped_names() else ""
        raise BadValue(f"{model} has to be given weights, by --weights{hint}")
    found = detector_weights(model, weights)
    extractor = extractor or read_metadata(found).get("extractor")
    if not extractor:
        raise BadValue(
            f"{found}: does not say whose features it was trained on; name the extractor, --extractor NAME; "
            "`jostle names extractors` lists them"
        )
    if extractor_weights is None and extractor in shipped_names():
        extractor_weights = weights_file(extractor)
    place = str(device_for(device))
    # The data are the same for every seed of the corruptions.
    loaded = load_dataset(recipe.dataset, recipe.subset, root=data)
    load = partial(_models, model, found, extractor, extractor_weights, place, loaded.truth)
    load()  # whatever is wrong with the weights is wrong before the first video
    contestant = Contestant(
        load,
        model,
        file_fingerprint(found),
        extractor,
        None if extractor_weights is None else file_fingerprint(Path(extractor_weights)),
    )
    return {"recipe": recipe, "data": loaded, "contestant": contestant, "cells": chosen, "device": place}


def _models(
    model: str, weights: Path, extractor: str, extractor_weights: str | Path | None, device: str, truth: Truth
) -> Models:
    """The networks, one thread each: the bits then do not depend on the machine or the number of processes."""
    from jostle.evaluation.sweep import Models
    from jostle.models.threads import one_thread

    detector = load_detector(model, weights=weights)
    name_classes(detector, truth)
    detector.to(device)
    return Models(load_extractor(extractor, weights=extractor_weights, device=device), {model: detector}, one_thread)
