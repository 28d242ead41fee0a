"""Mending in features, on the puppets: the shipped detectors as is, mended by the inspector, and with frames known.

    python -m experiments.mending WORK [--films 60] [--jobs 8] [--device cuda] [--draws 1000]
    python -m experiments.mending_ways WORK [--films 6] [--jobs 2]
    python -m experiments.mending_tables

Each contestant has a run folder in WORK, so what was stopped goes on; every film is looked at once for all of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.treatments import DETECTORS
from jostle.api.data import AskedData
from jostle.benchmarks.recipe import CLEAN, Recipe, benchmarks
from jostle.benchmarks.selection import select_cells
from jostle.datasets.dataset import Dataset
from jostle.findings.draws import Estimate
from jostle.findings.record import RunRecord
from jostle.findings.survey import Survey, survey
from jostle.loading.asked import AskedModel
from jostle.looking.sweep import Models
from jostle.running.contestants import contestant_for
from jostle.running.together import run_together
from jostle.shipped import TREATMENTS, trained_weights, weights_file
from jostle.types.columns import Flags

RESULTS = Path(__file__).with_name("mending.jsonl")
BENCHMARK, EXTRACTOR = "puppets-c", "puppet_net"
WAYS: dict[str, str | None] = {"as is": None, "mended": "jostle", "known": "known"}


@dataclass(frozen=True)
class Run:
    """A detector, how it was trained, and what is done about struck frames."""

    detector: str
    weights: str
    way: str
    films: int

    @property
    def folder(self) -> str:
        return f"{self.detector}-{self.weights}-{self.way.replace(' ', '-')}-{self.films}"

    @property
    def model(self) -> str:
        return f"{self.detector}_puppets"


def films_of(recipe: Recipe, count: int) -> Dataset:
    """So many of the test films, evenly spread over all."""
    data = AskedData(None, None, None, None).load(recipe)
    names = list(data.videos)
    chosen = [names[i * len(names) // count] for i in range(min(count, len(names)))]
    return replace(data, videos={name: data.videos[name] for name in chosen})


def models(runs: tuple[Run, ...], device: str) -> Models:
    """What looks at a film for all runs."""
    from jostle.detectors.checkpoints import read_note, read_weights
    from jostle.detectors.detector import load_detector
    from jostle.loading.inspector import AskedMending
    from jostle.models.extractor import load_extractor
    from jostle.models.threads import one_thread

    finders = {way: AskedMending(mend).get(device) for way, mend in WAYS.items() if mend is not None}
    detectors, mending = {}, {}
    for run in runs:
        path = trained_weights(run.model, run.weights)
        names: list[str] = read_note(path, "classes", [])
        detectors[run.folder] = load_detector(run.model, weights=path, class_names=names).to(device).eval()
        if run.way in finders:
            mending[run.folder] = finders[run.way]
    extractor = load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR)), device=device)
    return Models(extractor, detectors, one_thread, mending=mending)


def measure(work: Path, films: int, *, jobs: int, device: str, draws: int) -> Iterator[dict[str, Any]]:
    """A record of each run."""
    recipe = benchmarks[BENCHMARK]
    data, cells = films_of(recipe, films), select_cells(recipe)
    runs = tuple(Run(name, how, way, films) for way in WAYS for how in TREATMENTS for name in DETECTORS)
    contestants = {
        run.folder: replace(
            contestant_for(
                recipe,
                data,
                AskedModel(run.model, run.weights, mend=WAYS[run.way]),
                device,
                here=False,
            ),
            device=device,
        )
        for run in runs
    }
    folders = {run.folder: work / run.folder for run in runs}
    load = partial(models, runs, device)

    def tell(done: int, total: int) -> None:
        print(f"{done} of {total} films", flush=True)

    run_together(recipe, data, contestants, load, folders, cells=cells, jobs=jobs, progress=tell)
    for run in runs:
        record = RunRecord.read(folders[run.folder])
        known = RunRecord.read(folders[replace(run, way="known").folder])
        yield {
            "study": "main",
            "run": asdict(run),
            **numbers(survey(record, draws=draws)),
            "inspector": record.about.mend_weights,
            "frames": found_frames(record, known),
        }


def numbers(found: Survey) -> dict[str, Any]:
    """What is measured of a run: each with its interval."""
    told = {"clean": found.of(CLEAN), "corrupted": found.corrupted(), "relative": found.relative()}
    return {
        **{name: _plain(value) for name, value in told.items()},
        "cells": {cell: found.of(cell).value for cell in found.cells},
    }


def found_frames(record: RunRecord, known: RunRecord) -> dict[str, list[int]] | None:
    """By cell: struck frames that were found, struck ones, others that were found, and others."""
    if record.about.mend_weights is None:
        return None
    told: dict[str, list[int]] = {}
    for video in record.sources:
        place = record.truth.videos.index(video)
        frames = round(float(record.truth.duration[place] * record.truth.fps[place]))
        for cell in record.cells:
            found, struck = (_mask(one.found_struck(video, cell) or (), frames) for one in (record, known))
            counts = [(found & struck).sum(), struck.sum(), (found & ~struck).sum(), (~struck).sum()]
            told[cell] = [int(a + b) for a, b in zip(told.get(cell, [0, 0, 0, 0]), counts, strict=True)]
    return told


def _mask(stretches: tuple[tuple[int, int], ...], frames: int) -> Flags:
    mask = np.zeros(frames, np.bool_)
    for lo, hi in stretches:
        mask[lo:hi] = True
    return mask


def _plain(value: Estimate) -> list[float | None]:
    return [value.value, *(value.interval or (None, None))]


def keep(study: str, records: list[dict[str, Any]]) -> None:
    """Put the records of one study in place of its earlier ones."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    others = [line for line in lines if json.loads(line)["study"] != study]
    RESULTS.write_text("\n".join([*others, *map(json.dumps, records)]) + "\n", encoding="utf-8")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("work", type=Path)
    asked.add_argument("--films", type=int, default=60)
    asked.add_argument("--jobs", type=int, default=1)
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--draws", type=int, default=1000)
    given = asked.parse_args()
    keep("main", list(measure(given.work, given.films, jobs=given.jobs, device=given.device, draws=given.draws)))


if __name__ == "__main__":
    from experiments import mending  # by this name worker processes find it

    mending.main()
