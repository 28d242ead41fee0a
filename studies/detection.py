"""Feature-based detectors on the puppets: from a seed to the shipped weights and the numbers of docs/results/.

    python -m studies.detection WORK films network features study weights

Needs a CUDA GPU. Steps and runs that are done already are skipped, so a study that was stopped goes on.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.core.config import make_settings
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource
from jostle.evaluation.recipes.recipe import Cell, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS
from jostle.features.engine import VideoFeatures
from jostle.training.detection_config import TrainingConfig
from studies.harness import CORES, GridRun, Record, finish, parse_arguments, run_grid, ship_weights

STEPS = ("films", "network", "features", "first", "study", "weights")
DETECTORS = ("actionformer", "tridet", "temporalmaxer")
NETWORKS = (0, 1)
SEEDS = (0, 1, 2)
MAIN = ("clean", "drop", "drop + TRC")
SHIPPED = {"clean": "clean", "robust": "drop"}
TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7)
SHARES = {1: "1 %", 2: "5 %", 3: "10 %"}
# Of the term that sums over all points of a batch: the released weights are for two videos a step, here are sixteen.
WEIGHT = {"actionformer": 0.3 / 8, "tridet": 1.3 / 8, "temporalmaxer": 1.3 / 8, "vsgn": 1.3 / 8}
OPTIMISER: dict[str, Any] = {
    "lr": 1.5e-3,
    "warmup_epochs": 5,
    "epochs": 25,
    "weight_decay": 0.05,
    "batch": 16,
    "average": 0.99,
    "average_ramp": False,
}

RECIPE = benchmarks["puppets-c"]
PUPPETS_C = tuple(cell.name for cell in select_cells(RECIPE)[1:])


def _record_name(cell: Cell) -> str:
    """Return the name of a cell in the records."""
    placement = cell.name.partition("@")[2]
    if cell.group == "position":
        return f"five at {placement.removeprefix('at:').removesuffix('%x5')} %"
    return {"one-frame": "one frame", "background": "five in the background"}.get(cell.group, cell.name)


# The spec and placement of every cell; the placement is None where the spec has its own.
CELLS: dict[str, tuple[str, str | None]] = {
    _record_name(cell): (cell.specs[0], cell.placement)
    for cell in select_cells(RECIPE, [*PUPPETS_C, "group:one-frame", "group:position", "group:background"])[1:]
}


@dataclass(frozen=True)
class Treatment:
    """Changes to the settings of a clean run.

    Attributes:
        data: changes to `data`; `{features}` stands for the folder of the extractor's features.
        consistency: changes to `consistency`, besides its weight.
        weight: of the consistency, as a multiple of the detector's own; 0 for none.
    """

    data: Mapping[str, Any]
    consistency: Mapping[str, Any]
    weight: float = 1.0


def _drop(learn_from: str | None = None, **changes: Any) -> dict[str, Any]:
    drop = {"drop": {"struck": "{features}/black_frame", "placement": "pair", **changes}}
    return drop if learn_from is None else {**drop, "learn_from": learn_from}


def _fixed(corruption: str) -> dict[str, Any]:
    return {"corrupted": "{features}/pair-" + corruption}


TREATMENTS: dict[str, Treatment] = {
    "clean": Treatment({}, {}),
    "clean, two views": Treatment({"views": 2}, {}),
    "drop": Treatment(_drop("corrupted"), {}, 0.0),
    "drop + TRC": Treatment(_drop(), {}),
    # Table E
    "drop in actions + TRC": Treatment(_drop(placement="each:1"), {}),
    "drop in actions": Treatment(_drop("corrupted", placement="each:1"), {}, 0.0),
    # The released program: pairs that end with their action, drawn once.
    "released drop + TRC": Treatment(_drop(placement="pair:released", fresh=False), {}),
    "fixed drop": Treatment(_drop("corrupted", fresh=False), {}, 0.0),
    # Tables A and B
    "drop + TRC, action": Treatment(_drop(), {"selection": "action"}),
    "drop + TRC, video": Treatment(_drop(), {"selection": "video"}),
    "drop + MSE": Treatment(_drop(), {"divergence": "mse"}, 8.0),
    "drop + KL": Treatment(_drop(), {"divergence": "kl"}),
    # Why TRC gives what it gives
    "drop + TRC x 1/4": Treatment(_drop(), {}, 0.25),
    "drop + TRC x 4": Treatment(_drop(), {}, 4.0),
    "drop + TRC x 16": Treatment(_drop(), {}, 16.0),
    "drop + TRC, paper": Treatment(_drop(), {"form": "paper"}, 8.0),
    "drop + TRC, paper x 10": Treatment(_drop(), {"form": "paper"}, 80.0),
    "both": Treatment(_drop("both"), {}, 0.0),
    "both + TRC": Treatment(_drop("both"), {}),
    # A stronger drop than the paper's: as many frames in a row as the hardest cells corrupt.
    "drop x 8": Treatment(_drop("corrupted", placement="pair:x8"), {}, 0.0),
    "drop x 8 + TRC": Treatment(_drop(placement="pair:x8"), {}),
    "both x 8 + TRC": Treatment(_drop("both", placement="pair:x8"), {}),
    # Table 6
    **{f"fixed {name} + TRC": Treatment(_fixed(name), {}) for name in CORRUPTIONS},
    **{f"fixed {name}": Treatment({**_fixed(name), "learn_from": "corrupted"}, {}, 0.0) for name in CORRUPTIONS},
}


@dataclass(frozen=True)
class Run(GridRun):
    """A detector, a treatment, and the seeds of detector and extractor."""

    detector: str
    treatment: str
    seed: int
    network: int


@dataclass(frozen=True)
class Place:
    """Files of the study."""

    work: Path
    truth: Path

    def network(self, number: int) -> Path:
        return self.work / f"puppet_net-{number}.safetensors"

    def features(self, number: int, subset: str) -> Path:
        return self.work / f"features-{number}" / subset

    def films(self, number: int) -> Path:
        """Return the folder of the test films in the study of mending."""
        return self.work / f"films-{number}"

    def run(self, run: GridRun) -> Path:
        return self.work / "runs" / run.folder


def first_runs() -> list[Run]:
    """Return the runs whose weights are shipped, which also show whether the data set is too easy or too hard."""
    return [Run(detector, treatment, 0, 0) for treatment in SHIPPED.values() for detector in DETECTORS]


def study_runs() -> list[Run]:
    """Return every run of docs/results/, those of the main table first."""
    runs = [
        Run(detector, treatment, seed, network)
        for treatment in MAIN
        for detector in DETECTORS
        for network in NETWORKS
        for seed in SEEDS
    ]
    single = {f"fixed {name}" for name in CORRUPTIONS}
    grids: list[tuple[Sequence[str], Sequence[str]]] = [
        (DETECTORS, ["clean, two views"]),
        (["tridet"], [name for name in TREATMENTS if name not in single]),
        (["temporalmaxer"], ["drop in actions", "drop in actions + TRC", "both", "drop x 8", "drop x 8 + TRC"]),
    ]
    for detectors, treatments in grids:
        runs += [Run(name, how, seed, 0) for how in treatments for name in detectors for seed in SEEDS]
    table_6 = [f"fixed {name} + TRC" for name in CORRUPTIONS]
    return sorted(dict.fromkeys(runs), key=lambda run: (run.treatment in table_6, run.treatment not in MAIN))


def main() -> None:
    """Run the steps that the command line names."""
    arguments = parse_arguments(__doc__, STEPS, jobs=CORES, networks=NETWORKS, results=Path)
    films = {name: jostle.load_dataset("puppets", name, jobs=arguments.jobs) for name in ("training", "test")}
    place = Place(arguments.work, films["test"].folder / "annotations.json")
    results = arguments.results or arguments.work / "results.jsonl"
    if "films" in arguments.steps:
        jostle.load_dataset("puppets", "validation", jobs=arguments.jobs)
    if "network" in arguments.steps:
        train_networks(place, arguments.networks, arguments.jobs)
    if "features" in arguments.steps:
        for number in arguments.networks:
            for subset in ("training", "test"):
                folder = place.features(number, subset)
                make_features(subset, place.network(number), folder, jobs=arguments.jobs)
    runs = (first_runs() if "first" in arguments.steps else []) + (study_runs() if "study" in arguments.steps else [])
    finish(run_grid(runs, partial(measure, place=place), results, at_once=arguments.jobs, summarise=summarise))
    if "weights" in arguments.steps:
        weights = {
            f"{detector}_puppets-{name}": place.run(Run(detector, treatment, 0, 0)) / "last.safetensors"
            for detector in DETECTORS
            for name, treatment in SHIPPED.items()
        }
        ship_weights({"puppet_net": place.network(0), **weights}, extractor="puppet_net")


def train_networks(place: Place, networks: Sequence[int], jobs: int) -> None:
    """Train the extractors that are missing."""
    from studies.drawn_films import draw_films, load_films
    from studies.puppet_net import Schedule, train_puppet_net

    missing = [number for number in networks if not place.network(number).exists()]
    if not missing:
        return
    films = draw_films(window=16, jobs=jobs)
    held_out = load_films("validation", window=16, jobs=jobs, stride=4)
    for number in missing:
        print(number, train_puppet_net(films, held_out, place.network(number), seed=number, schedule=Schedule()))


_extractor: Any = None


def make_features(
    subset: str,
    network: Path,
    out: Path,
    *,
    jobs: int,
    fixed: Collection[str] = CORRUPTIONS,
    cells: Collection[str] = tuple(CELLS),
) -> None:
    """Write `<out>/<state>/<video>.npy` for each state of each video of a subset.

    States of training videos: `clean` with `clean/frames`, `black_frame/frames` with every frame black, and for each
    `fixed` corruption one drop in every pair, `pair-<corruption>`. Of test videos: `clean` and these cells.
    """
    data = jostle.load_dataset("puppets", subset=subset, jobs=jobs)
    actions, wanted = data.truth.actions, fixed if subset == "training" else cells
    tasks = [(subset, name, data.videos[name], actions[name], out, wanted) for name in data.truth.videos]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_load_extractor, initargs=(network,)) as pool:
        list(pool.map(_write_features, tasks))


def _load_extractor(network: Path) -> None:
    global _extractor
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.extractors.extractor import load_extractor

    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _extractor = load_extractor("puppet_net", weights=read_weights(network), device=device)


def _write_features(task: tuple[str, str, Path, Segments, Path, Collection[str]]) -> None:
    subset, name, path, segments, out, wanted = task
    video = VideoFeatures(ClipSource(jostle.read(path)), _extractor, video_id=name, segments=segments)

    def save(state: str, values: Any) -> None:
        (out / state).mkdir(parents=True, exist_ok=True)
        np.save(out / state / f"{name}.npy", values)

    clean = video.clean()
    save("clean", clean.features)
    if subset == "training":
        save("clean/frames", clean.seen)
        save("black_frame/frames", video.under([Spec.parse("thumos14-c/black_frame:1")], "everywhere").seen)
        for corruption in wanted:
            spec = Spec.parse(f"thumos14-c/{corruption}:1")
            save(f"pair-{corruption}", video.under([spec], "pair").features)
    if subset == "test":
        for number, (cell, (spec_text, placement)) in enumerate(CELLS.items()):
            if cell in wanted:
                save(f"cell-{number}", video.under([Spec.parse(spec_text)], placement).features)


def settings_for(run: Run, place: Place) -> TrainingConfig:
    """Return the settings of one training run."""
    treatment, features = TREATMENTS[run.treatment], place.features(run.network, "training")

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {**{key: fill(part) for key, part in value.items()}, "weights": str(place.network(run.network))}
        return value.format(features=features) if isinstance(value, str) else value

    data = {"features": str(features / "clean"), "truth": str(place.truth), "train": "training"}
    return make_settings(
        TrainingConfig,
        {
            "detector": f"{run.detector}_puppets",
            "data": data | {key: fill(value) for key, value in treatment.data.items()},
            "optimiser": OPTIMISER,
            "consistency": {"weight": treatment.weight * WEIGHT[run.detector], **treatment.consistency},
            "seed": run.seed,
            "save_every": 1e9,
        },
    )


def summarise(record: Record) -> str:
    """Return the clean and the corrupted score of a run, to be printed."""
    cells = record["cells"]
    corrupted = np.mean([cells[name][2] for name in PUPPETS_C])
    return f"clean {100 * cells['clean'][2]:.2f} corrupted {100 * corrupted:.2f}"


def train_detector(config: Any, folder: Path) -> Any:
    """Train a detector and return it with its last weights, ready for inference; its checkpoint is deleted."""
    import torch

    from jostle.training.loop import train

    weights = train(config, folder).weights
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    detector = load_trained(config.detector, weights, **config.settings)
    return detector.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def load_trained(name: str, weights: Path, **settings: Any) -> Any:
    """Load a detector with trained weights, the classes that they know and changed settings."""
    from jostle.models.checkpoints import read_note
    from jostle.models.detection.detector import load_detector

    classes: list[str] = read_note(weights, "classes", [])
    return load_detector(name, weights=weights, class_names=tuple(classes), **settings)


def measure(run: Run, place: Place, cells: Collection[str] = tuple(CELLS)) -> Record:
    """Train a detector, and score it on the test videos in these cells."""
    begin = time.monotonic()
    detector = train_detector(settings_for(run, place), place.run(run))
    trained = time.monotonic()
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    test = place.features(run.network, "test")
    states = {"clean": test / "clean"} | {name: test / f"cell-{i}" for i, name in enumerate(CELLS) if name in cells}
    scores, profiles = {}, {}
    for name, folder in states.items():
        predictions = detect_in_features(detector, folder, truth)
        scores[name] = jostle.score(predictions, truth, protocol="thumos14", tious=TIOUS).map.tolist()
        if name == "clean" or name in PUPPETS_C:
            profiles[name] = error_profile(predictions, truth)
    clean = profiles.pop("clean")
    corrupted = {key: float(np.mean([profile[key] for profile in profiles.values()])) for key in clean}
    seconds = [round(trained - begin, 1), round(time.monotonic() - trained, 1)]
    diagnosis = {"clean": clean, "corrupted": corrupted}
    return {"run": asdict(run), "cells": scores, "diagnosis": diagnosis, "seconds": seconds}


def detect_in_features(detector: Any, folder: Path, truth: Any) -> Predictions:
    """Return the detections in the feature files of a folder."""
    return Predictions.from_segments(
        {
            name: detector.detect(np.load(folder / f"{name}.npy"), fps=float(fps), duration=float(duration))
            for name, fps, duration in zip(truth.videos, truth.fps, truth.duration, strict=True)
        }
    )


def error_profile(predictions: Predictions, truth: Any) -> dict[str, float]:
    """Return the cost of each kind of error, in average mAP_N, and the share of actions that are missed."""
    diagnosis = jostle.diagnose(predictions, truth, style="thumos14").to_dict()
    return {**diagnosis["false_positives"]["impact"], "missed": diagnosis["false_negatives"]["overall"]}


if __name__ == "__main__":
    from studies import detection  # the name by which worker processes find the runs

    detection.main()
