"""From a seed to the shipped weights and the numbers of docs/results.md, on one machine with a CUDA GPU.

    python -m studies.puppets WORK network features study weights

Steps that are done already are skipped, so a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path

import jostle
from studies.cells import CORRUPTIONS
from studies.measuring import end_with, measure_all
from studies.runs import Place, Run, measure, said
from studies.treatments import DETECTORS, TREATMENTS

NETWORKS = (0, 1)
SEEDS = (0, 1, 2)
MAIN = ("clean", "drop", "drop + TRC")
SHIPPED = {"clean": "clean", "robust": "drop"}
STEPS = ("films", "network", "features", "first", "study", "weights")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="folder for networks, features and runs")
    parser.add_argument("steps", nargs="+", choices=STEPS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--networks", type=int, nargs="+", default=NETWORKS)
    parser.add_argument("--results", type=Path, default=None)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    films = {name: jostle.load_dataset("puppets", name, jobs=given.jobs) for name in ("training", "test")}
    place = Place(given.work, films["test"].folder / "annotations.json")
    results = given.results or given.work / "results.jsonl"
    if "films" in given.steps:
        jostle.load_dataset("puppets", "validation", jobs=given.jobs)
    if "network" in given.steps:
        train_networks(place, given.networks, given.jobs)
    if "features" in given.steps:
        from studies.features import make_features

        for number in given.networks:
            for subset in ("training", "test"):
                make_features(subset, place.network(number), place.features(number, subset), jobs=given.jobs)
    runs = (first_look() if "first" in given.steps else []) + (study() if "study" in given.steps else [])
    end_with(measure_all(runs, partial(measure, place=place), results, at_once=given.jobs, said=said))
    if "weights" in given.steps:
        ship(place)


def train_networks(place: Place, networks: tuple[int, ...], jobs: int) -> None:
    from studies.films import draw_films, load_films
    from studies.puppet_net import Schedule, train_puppet_net

    left = [number for number in networks if not place.network(number).exists()]
    if not left:
        return
    films = draw_films(window=16, jobs=jobs)
    held_out = load_films("validation", window=16, jobs=jobs, stride=4)
    for number in left:
        print(number, train_puppet_net(films, held_out, place.network(number), seed=number, schedule=Schedule()))


def first_look() -> list[Run]:
    """The runs whose weights are shipped: also a first look at whether the data set is too easy or too hard."""
    return [Run(detector, treatment, 0, 0) for treatment in SHIPPED.values() for detector in DETECTORS]


def study() -> list[Run]:
    """Every run of docs/results.md, the main table first."""
    made = [
        Run(detector, treatment, seed, network)
        for treatment in MAIN
        for detector in DETECTORS
        for network in NETWORKS
        for seed in SEEDS
    ]
    made += [Run(detector, "clean, two views", seed, 0) for detector in DETECTORS for seed in SEEDS]
    table_6 = [f"fixed {name} + TRC" for name in CORRUPTIONS]
    alone = {f"fixed {name}" for name in CORRUPTIONS}
    for treatment in [name for name in TREATMENTS if name not in alone]:
        made += [Run("tridet", treatment, seed, 0) for seed in SEEDS]
    for treatment in ("drop in actions", "drop in actions + TRC", "both", "drop x 8", "drop x 8 + TRC"):
        made += [Run("temporalmaxer", treatment, seed, 0) for seed in SEEDS]
    return sorted(dict.fromkeys(made), key=lambda run: (run.treatment in table_6, run.treatment not in MAIN))


def ship(place: Place) -> None:
    """Copy the weights of the first seeds into the package, in half precision."""
    import torch

    from jostle.models.checkpoints import read_metadata, read_weights, write_weights
    from jostle.models.weights.shipped import FOLDER

    sources = {"puppet_net": place.network(0)}
    for detector in DETECTORS:
        for name, treatment in SHIPPED.items():
            run = Run(detector, treatment, 0, 0)
            sources[f"{detector}_puppets-{name}"] = place.work / "runs" / run.folder / "last.safetensors"
    for name, path in sources.items():
        half = {key: value.half() if value.is_floating_point() else value for key, value in read_weights(path).items()}
        wide = {key: value for key, value in half.items() if torch.isfinite(value).all()}
        assert len(wide) == len(half), f"{path}: weights that do not fit half precision"
        metadata = read_metadata(path) | {"extractor": "puppet_net"}
        write_weights(half, FOLDER / f"{name}.safetensors", metadata=metadata)
    whole = sum(file.stat().st_size for file in FOLDER.glob("*.safetensors"))
    print(json.dumps({"files": len(sources), "bytes": whole}))


if __name__ == "__main__":
    main()
