"""Mending in front of detectors: trained anew several times over, looked at as is, mended, and with frames known.

    python -m studies.mending WORK network training detectors cells study [--groups main ...] [--jobs 12]
    python -m studies.mending WORK shipped cells study --networks 0 --treatments clean drop --seeds 0 --films 12

`network` trains extractors beside the one that comes with jostle, which is number 0. `training` makes the features that
detectors learn from, `detectors` trains these, `cells` makes the features of the test films in a group of cells, and
`study` measures there. What is done already is skipped, so a study that was stopped goes on. `shipped` takes the
weights that come with jostle in place of training any. The group `unseen` needs the inspectors that
`studies.mending_unseen` trains.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.core.types.predictions import Predictions
from jostle.datasets.dataset import Dataset
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.io.files.atomic import write_bytes
from jostle.metrics.bootstrap import video_weights
from studies.detection import (
    CORRUPTIONS,
    MAIN,
    NETWORKS,
    PUPPETS_C,
    SHIPPED,
    TIOUS,
    Place,
    error_profile,
    load_trained,
    make_features,
    settings_for,
    train_networks,
)
from studies.detection import Run as Training
from studies.harness import CORES, Record, finish, parse_arguments, run_grid
from studies.mending_features import (
    ALONE,
    EXTRACTOR,
    GROUPS,
    KNOWN,
    UNSEEN,
    find_in_states,
    inspector_file,
    make_mended,
    plan_of,
    read_mended,
)

DETECTORS = ("actionformer", "tridet", "temporalmaxer", "vsgn")
TREATMENTS = MAIN
SEEDS = (0, 1, 2)
STEPS = ("network", "training", "detectors", "shipped", "cells", "study")
EVERY = (*GROUPS, UNSEEN)
TREATED = ("main", "single", "extra")  # groups that robustly trained detectors are measured in, too
TWICE = ("main",)  # groups that are measured on features of every network
DRAWN = ("main", UNSEEN)  # groups whose relative robustness has intervals
DRAWS = 200
AT_HALF = 2


@dataclass(frozen=True)
class Run:
    """A trained detector in a group of cells."""

    detector: str
    treatment: str
    seed: int
    network: int
    group: str

    @property
    def training(self) -> Training:
        return Training(self.detector, self.treatment, self.seed, self.network)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        STEPS,
        groups=EVERY,
        detectors=DETECTORS,
        treatments=TREATMENTS,
        seeds=list(SEEDS),
        networks=NETWORKS,
        kinds=tuple(CORRUPTIONS),
        films=int,
        jobs=CORES,
        at_once=6,
        epochs=int,
        results=Path,
    )
    data = films_of(jostle.load_dataset("puppets", subset="test", jobs=arguments.jobs), arguments.films)
    place = Place(arguments.work, Path(data.folder) / "annotations.json")
    take_network(place)
    if "network" in arguments.steps:
        train_networks(place, arguments.networks, arguments.jobs)
    if "training" in arguments.steps:
        for number in arguments.networks:
            make_training(place, number, arguments.jobs)
    chosen = {"detector": arguments.detectors, "treatment": arguments.treatments, "seed": arguments.seeds}
    chosen["network"] = arguments.networks
    failed = []
    if "shipped" in arguments.steps:
        take_shipped(place)
    if "detectors" in arguments.steps:
        teach = partial(learn, place=place, epochs=arguments.epochs)
        first = [run.training for run in runs_of("main", chosen)]
        failed += run_grid(
            first,
            teach,
            arguments.work / "trained.jsonl",
            at_once=arguments.at_once,
            summarise=lambda record: "trained",
        )
    runs = [run for group in arguments.groups for run in runs_of(group, chosen)]
    if "cells" in arguments.steps:
        for group, number in dict.fromkeys((run.group, run.network) for run in runs):
            plan = plan_of(group, arguments.work / "inspectors", arguments.kinds)
            make_mended(data, group, place, number, plan=plan, jobs=arguments.jobs)
    if "study" in arguments.steps:
        look = partial(measure, place=place, names=tuple(data.videos))
        results = arguments.results or arguments.work / "mending.jsonl"
        failed += run_grid(runs, look, results, at_once=arguments.at_once, summarise=summarise)
    finish(failed)


def films_of(data: Dataset, count: int | None) -> Dataset:
    """So many of the films, evenly spread over all."""
    names = list(data.videos)
    many = len(names) if count is None else min(count, len(names))
    chosen = [names[i * len(names) // many] for i in range(many)]
    return replace(data, videos={name: data.videos[name] for name in chosen})


def runs_of(group: str, chosen: dict[str, Any]) -> list[Run]:
    """Those of a group that are chosen."""
    return [run for run in study(group) if all(getattr(run, key) in some for key, some in chosen.items())]


def study(group: str) -> list[Run]:
    """The runs of a group."""
    treatments = TREATMENTS if group in TREATED else TREATMENTS[:1]
    networks = NETWORKS if group in TWICE else NETWORKS[:1]
    return [
        Run(name, how, seed, network, group)
        for network in networks
        for how in treatments
        for seed in SEEDS
        for name in DETECTORS
    ]


def take_network(place: Place) -> None:
    """Have the extractor that comes with jostle stand for the first one."""
    from jostle.models.weights.shipped import weights_file

    if not place.network(0).exists():
        write_bytes(place.network(0), [weights_file(EXTRACTOR).read_bytes()])


def make_training(place: Place, number: int, jobs: int) -> None:
    """Features of the training films by a network."""
    out = place.features(number, "training")
    if not out.exists():
        part = out.with_name("training.part")
        make_features("training", place.network(number), part, jobs=jobs, fixed=())
        part.rename(out)


def take_shipped(place: Place) -> None:
    """Have the weights that come with jostle stand for the first seed, where nothing was trained."""
    from jostle.models.weights.shipped import trained_weights

    for detector in DETECTORS:
        for name, treatment in SHIPPED.items():
            folder = place.run(Training(detector, treatment, 0, 0))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "last.safetensors").write_bytes(trained_weights(f"{detector}_puppets", name).read_bytes())


def summarise(record: Record) -> str:
    """Return the clean and the corrupted score of each way, to be printed."""
    told = []
    for way, scores in record["scores"].items():
        corrupted = np.mean([value for cell, value in scores.items() if cell != CLEAN])
        told.append(f"{way} {100 * scores[CLEAN]:.2f} {100 * corrupted:.2f}")
    return ", ".join(told)


def measure(run: Run, place: Place, names: Collection[str]) -> Record:
    """Score a detector on these test films in every cell of a group, in every way."""
    import torch

    begin = time.monotonic()
    loaded = load_trained(f"{run.detector}_puppets", place.run(run.training) / "last.safetensors")
    detector = loaded.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    facts = {
        name: {"fps": float(fps), "duration": float(duration)}
        for name, fps, duration in zip(truth.videos, truth.fps, truth.duration, strict=True)
    }
    told: dict[str, list[Any]] = {}
    which: dict[str, dict[str, list[int]]] = {}  # by way and cell, of each film what of that it is
    found: dict[str, dict[str, list[int]]] = {}
    for film in read_mended(place.films(run.network), run.group, names):
        told[film.name] = find_in_states(detector, film.rows, **facts[film.name])
        for way, cells in film.place.items():
            for cell, number in cells.items():
                which.setdefault(way, {}).setdefault(cell, []).append(number)
                counts = film.found.get(way, {}).get(cell, [0, 0, 0, 0])
                kept = found.setdefault(way, {}).setdefault(cell, [0, 0, 0, 0])
                found[way][cell] = [a + b for a, b in zip(kept, counts, strict=True)]
    films = list(told)
    part = truth.of_videos(films)
    record: Record = {"run": asdict(run), "films": len(films), "scores": {}, "found": found}

    @cache  # where struck frames are known, cells of other kinds and the same frames are mended into the same
    def predicted(numbers: tuple[int, ...]) -> Predictions:
        return Predictions.from_segments({name: told[name][n] for name, n in zip(films, numbers, strict=True)})

    @cache
    def scored(numbers: tuple[int, ...]) -> Any:
        return jostle.score(predicted(numbers), part, protocol="thumos14", tious=TIOUS)

    @cache
    def told_of(numbers: tuple[int, ...]) -> dict[str, float]:
        return error_profile(predicted(numbers), part)

    for way, of_cell in which.items():
        numbers = {cell: tuple(one) for cell, one in of_cell.items()}
        record["scores"][way] = {cell: round(float(scored(one).map[AT_HALF]), 5) for cell, one in numbers.items()}
        if run.group in DRAWN:
            record.setdefault("drawn", {})[way] = draw_scores(
                {cell: scored(one) for cell, one in numbers.items()}, films
            )
        if run.group == "main":
            clean = told_of(numbers[CLEAN])
            each = [told_of(numbers[cell]) for cell in PUPPETS_C]
            struck = {key: float(np.mean([one[key] for one in each])) for key in clean}
            record.setdefault("diagnosis", {})[way] = {
                name: {key: round(value, 5) for key, value in one.items()}
                for name, one in (("clean", clean), ("corrupted", struck))
            }
    if run.group == UNSEEN:
        own = [way for way in which if way != KNOWN and not way.endswith(ALONE)]
        record["inspectors"] = {way: _steps(place.work / "inspectors", way) for way in own}
    else:
        record["inspector"] = jostle.load_inspector().fingerprint
    record["seconds"] = round(time.monotonic() - begin, 1)
    return record


def draw_scores(scored: dict[str, Any], films: list[str]) -> list[list[float]]:
    """In each draw of the films, the clean score and the mean of the others."""
    weights = video_weights(films, DRAWS)
    place = {name: i for i, name in enumerate(films)}
    made = {}
    for cell, one in scored.items():
        own = [place[name] for name in one.resamples.videos]
        made[cell] = one.resamples.weighted(weights[:, own])[:, AT_HALF]
    clean = made.pop(CLEAN)
    return [[round(float(a), 4), round(float(b), 4)] for a, b in zip(clean, np.mean([*made.values()], 0), strict=True)]


def learn(run: Training, place: Place, epochs: int | None = None) -> Record:
    """Train a detector."""
    from jostle.training.loop import train

    begin = time.monotonic()
    config = settings_for(run, place)
    if epochs is not None:
        config = replace(config, optimiser=replace(config.optimiser, epochs=epochs, warmup_epochs=0))
    done = train(config, place.run(run))
    (done.folder / "checkpoint.safetensors").unlink(missing_ok=True)
    return {"run": asdict(run), "steps": done.steps, "seconds": round(time.monotonic() - begin, 1)}


def _steps(folder: Path, name: str) -> int:
    from jostle.models.checkpoints import read_metadata

    return int(read_metadata(inspector_file(folder, name))["steps"])


if __name__ == "__main__":
    from studies import mending  # by this name worker processes find it

    mending.main()
