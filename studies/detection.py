"""Feature-based detectors on the puppets: from a seed to the shipped weights and the numbers of docs/results/.

    python -m studies.detection WORK films network features study weights

Needs a CUDA GPU. Steps and runs that are done already are skipped, so a study that was stopped goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import jostle
from jostle.core.config import make_settings
from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.recipe import Cell, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, PROFILE
from jostle.training.detection_config import TrainingConfig
from studies.feature_states import (
    AS_IS,
    CorruptedCell,
    DetectedStates,
    Way,
    load_extractor_file,
    make_states,
    read_states,
)
from studies.harness import (
    CORES,
    Grid,
    GridRun,
    Record,
    get_device,
    run_module,
    run_study,
    ship_weights,
    train_run,
)

EXTRACTOR = "puppet_net"
DETECTORS = ("actionformer", "tridet", "temporalmaxer")
NETWORKS = (0, 1)
SEEDS = (0, 1, 2)
MAIN = ("clean", "drop", "drop + TRC")
SHIPPED = {"clean": "clean", "robust": "drop"}
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


CELLS = {
    _record_name(cell): CorruptedCell(_record_name(cell), (Spec.parse(cell.specs[0]),), cell.placement)
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
class DetectorRun(GridRun):
    """A detector, a treatment, and the seeds of detector and extractor."""

    detector: str
    treatment: str
    seed: int
    network: int


@dataclass(frozen=True)
class Place:
    """Paths of the files of the study."""

    work: Path
    truth: Path

    def network(self, number: int) -> Path:
        return self.work / f"puppet_net-{number}.safetensors"

    def features(self, number: int) -> Path:
        """Return the folder of the features of the training films."""
        return self.work / f"features-{number}"

    def states(self, number: int, group: str) -> Path:
        """Return the folder of the features of the test films in a group of cells."""
        return self.work / f"films-{number}" / group

    def take_network(self) -> None:
        """Let the extractor that comes with jostle stand for the first one, unless it was trained."""
        from jostle.models.weights.shipped import weights_file

        if not self.network(0).exists():
            self.network(0).write_bytes(weights_file(EXTRACTOR).read_bytes())

    def run(self, run: GridRun) -> Path:
        return self.work / "runs" / run.folder


def first_runs() -> list[DetectorRun]:
    """Return the runs whose weights are shipped, which also show whether the data set is too easy or too hard."""
    return [DetectorRun(detector, treatment, 0, 0) for treatment in SHIPPED.values() for detector in DETECTORS]


def study_runs() -> list[DetectorRun]:
    """Return every run of docs/results/, those of the main table first."""
    runs = [
        DetectorRun(detector, treatment, seed, network)
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
        runs += [DetectorRun(name, how, seed, 0) for how in treatments for name in detectors for seed in SEEDS]
    table_6 = [f"fixed {name} + TRC" for name in CORRUPTIONS]
    return sorted(dict.fromkeys(runs), key=lambda run: (run.treatment in table_6, run.treatment not in MAIN))


def get_place(work: Path, jobs: int) -> Place:
    """Return the files of the study in WORK; the test films are drawn where they are missing."""
    return Place(work, jostle.load_dataset("puppets", "test", jobs=jobs).folder / "annotations.json")


def main() -> None:
    """Run the steps that the command line names."""
    grids = {"first": first_runs, "study": study_runs}
    run_study(
        __doc__,
        "results",
        {
            "films": draw_films,
            "network": train_networks,
            "features": make_features,
            **{name: Grid(runs, measure, summarise) for name, runs in grids.items()},
            "weights": ship_detectors,
        },
        lambda arguments: {"place": get_place(arguments.work, arguments.jobs)},
        jobs=CORES,
        at_once=CORES,
        networks=NETWORKS,
    )


def draw_films(jobs: int) -> None:
    """Draw the films that the other steps need."""
    for subset in ("training", "validation"):
        jostle.load_dataset("puppets", subset, jobs=jobs)


def ship_detectors(place: Place) -> None:
    """Put the extractor and the detectors into the package."""
    pairs = product(DETECTORS, SHIPPED.items())
    runs = {f"{name}_puppets-{weights}": DetectorRun(name, treatment, 0, 0) for name, (weights, treatment) in pairs}
    weights = {name: place.run(run) / "last.safetensors" for name, run in runs.items()}
    ship_weights({EXTRACTOR: place.network(0), **weights}, extractor=EXTRACTOR)


def train_networks(place: Place, networks: Sequence[int], jobs: int) -> None:
    """Train the extractors that are missing."""
    from studies.drawn_films import draw_films, load_films
    from studies.puppet_net import ExtractorSchedule, train_puppet_net

    missing = [number for number in networks if not place.network(number).exists()]
    if not missing:
        return
    films = draw_films(window=16, jobs=jobs)
    held_out = load_films("validation", window=16, jobs=jobs, stride=4)
    for number in missing:
        print(
            number, train_puppet_net(films, held_out, place.network(number), seed=number, schedule=ExtractorSchedule())
        )


def make_features(place: Place, networks: Sequence[int], jobs: int) -> None:
    """Extract the features of all films by some networks."""
    for number in networks:
        make_training_features(place, number, jobs)
        make_test_features(place, number, jobs)


def make_training_features(place: Place, number: int, jobs: int, fixed: Collection[str] = CORRUPTIONS) -> None:
    """Extract the features of the training films by a network; see `extract_training`."""
    films = jostle.load_dataset("puppets", "training", jobs=jobs).folder / "training"
    out = place.features(number)
    extract_training(films, EXTRACTOR, out, fixed, weights=place.network(number), truth=place.truth, jobs=jobs)


def extract_training(
    films: Path,
    extractor: str,
    out: Path,
    fixed: Iterable[str],
    *,
    of_frames: bool = True,
    placement: str = "pair",
    **options: Any,
) -> None:
    """Extract the features of training films in the states that detectors learn from.

    States: `clean`, for each `fixed` corruption one drop in every pair, `pair-<corruption>`, and of an extractor that
    sees single frames `black_frame`, where every frame is black.
    """
    extract = partial(jostle.extract, films, extractor, subset="training", **options)
    extract(out / "clean", keep_frames=of_frames)
    reuse = {"clean": out / "clean"} if of_frames else {}
    if of_frames:
        black = f"{PROFILE}/black_frame:1"
        extract(out / "black_frame", spec=black, placement="everywhere", keep_frames=True, **reuse)
    for name in fixed:
        extract(out / f"pair-{name}", spec=f"{PROFILE}/{name}:1", placement=placement, **reuse)


def make_test_features(place: Place, number: int, jobs: int) -> None:
    """Extract the features of the test films in every cell."""
    data = jostle.load_dataset("puppets", "test", jobs=jobs)
    load = partial(load_extractor_file, EXTRACTOR, place.network(number))
    make_states(data, place.states(number, "cells"), load, [Way(AS_IS, None, tuple(CELLS.values()))], jobs=jobs)


def settings_for(run: DetectorRun, place: Place) -> TrainingConfig:
    """Return the settings of one training run."""
    extractor = {"weights": str(place.network(run.network))}
    return configure(run, place.features(run.network), place.truth, extractor, optimiser=OPTIMISER)


def configure(
    run: Any,
    features: Path,
    truth: Path,
    extractor: Mapping[str, str],
    *,
    optimiser: Mapping[str, Any],
    weight: float = 1.0,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> TrainingConfig:
    """Return the settings of a run of a detector under a treatment on features of some extractor.

    Args:
        extractor: name and weights, for drops that are drawn anew.
        weight: of the consistency, as a multiple of that for sixteen videos a step.
    """
    treatment = TREATMENTS[run.treatment]

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {**{key: fill(part) for key, part in value.items()}, **extractor}
        return value.format(features=features) if isinstance(value, str) else value

    data = {"features": str(features / "clean"), "truth": str(truth), "train": "training"}
    weight = weight * treatment.weight * WEIGHT[run.detector]
    return make_settings(
        TrainingConfig,
        {
            "detector": f"{run.detector}_puppets",
            "settings": dict(settings),
            "data": data | {key: fill(value) for key, value in treatment.data.items()},
            "optimiser": optimiser,
            "consistency": {"weight": weight, **treatment.consistency},
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
    """Train a detector and return it with its last weights, ready for inference."""
    weights = train_run(config, folder)
    return load_trained(config.detector, weights, **config.settings)


def load_trained(name: str, weights: Path, **settings: Any) -> Any:
    """Load a detector for inference with trained weights, the classes that they know and changed settings."""
    from jostle.models.checkpoints import read_note
    from jostle.models.detection.detector import load_detector

    classes: list[str] = read_note(weights, "classes", [])
    return load_detector(name, weights=weights, class_names=tuple(classes), **settings).to(get_device()).eval()


def measure(run: DetectorRun, place: Place) -> Record:
    """Train a detector, and score it on the test videos in every cell."""
    detector = train_detector(settings_for(run, place), place.run(run))
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    states = DetectedStates(detector, read_states(place.states(run.network, "cells"), truth.videos), truth)
    cells = {cell: states.score(AS_IS, cell).map.tolist() for cell in ("clean", *CELLS)}
    return {"cells": cells, "diagnosis": states.errors(AS_IS, PUPPETS_C)}


if __name__ == "__main__":
    run_module("studies.detection")
