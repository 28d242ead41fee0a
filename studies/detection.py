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

import jostle
from jostle.core.settings import make_settings
from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.recipe import Cell, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, PROFILE
from jostle.training.detection_config import TrainingConfig
from studies import harness
from studies.feature_states import (
    AS_IS,
    CorruptedCell,
    DetectedStates,
    Way,
    load_extractor_file,
    make_states,
    read_states,
    register_extractor,
)

SETTINGS = harness.load_settings("detection")
DETECTORS, NETWORKS, SEEDS, MAIN = (tuple(SETTINGS[name]) for name in ("detectors", "networks", "seeds", "main"))
OPTIMISER: dict[str, Any] = SETTINGS["optimiser"]
TREATMENTS: dict[str, dict[str, Any]] = dict(SETTINGS["treatments"])
for _name in CORRUPTIONS:  # table 6
    TREATMENTS[f"fixed {_name} + TRC"] = {"data": {"corrupted": f"{{features}}/pair-{_name}"}}
for _name in CORRUPTIONS:
    _data = {"corrupted": f"{{features}}/pair-{_name}", "learn_from": "corrupted"}
    TREATMENTS[f"fixed {_name}"] = {"data": _data, "weight": 0.0}
EXTRACTOR = "puppet_net"
SHIPPED = {"clean": "clean", "robust": "drop"}
AT_HALF = 2  # of the thresholds 0.3, 0.4, 0.5, 0.6, 0.7
SHARES = {1: "1 %", 2: "5 %", 3: "10 %"}

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
class DetectorRun(harness.GridRun):
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
        """Use the bundled extractor as the first one, unless it was trained."""
        from jostle.models.weights.packaged import weights_file

        if not self.network(0).exists():
            self.network(0).write_bytes(weights_file(EXTRACTOR).read_bytes())


def first_runs() -> list[DetectorRun]:
    """Return the runs whose weights are shipped, which also show whether the data set is too easy or too hard."""
    return harness.list_runs(DetectorRun, treatment=SHIPPED.values(), detector=DETECTORS, seed=[0], network=[0])


def study_runs() -> list[DetectorRun]:
    """Return every run of docs/results/, those of the main table first."""
    runs = harness.list_runs(DetectorRun, treatment=MAIN, detector=DETECTORS, network=NETWORKS, seed=SEEDS)
    single = {f"fixed {name}" for name in CORRUPTIONS}
    grids: list[tuple[Sequence[str], Sequence[str]]] = [
        (DETECTORS, ["clean, two views"]),
        (["tridet"], [name for name in TREATMENTS if name not in single]),
        (["temporalmaxer"], ["drop in actions", "drop in actions + TRC", "both", "drop x 8", "drop x 8 + TRC"]),
    ]
    for detectors, treatments in grids:
        runs += harness.list_runs(DetectorRun, treatment=treatments, detector=detectors, seed=SEEDS, network=[0])
    table_6 = [f"fixed {name} + TRC" for name in CORRUPTIONS]
    return sorted(dict.fromkeys(runs), key=lambda run: (run.treatment in table_6, run.treatment not in MAIN))


def get_place(work: Path, jobs: int) -> Place:
    """Return the files of the study in WORK; the test films are drawn where they are missing."""
    return Place(work, jostle.load_dataset("puppets", "test", jobs=jobs).folder / "annotations.json")


def main() -> None:
    """Run the steps that the command line names."""
    grids = {"first": first_runs, "study": study_runs}
    harness.run_study(
        __doc__,
        "results",
        {
            "films": draw_films,
            "network": train_networks,
            "features": make_features,
            **{name: harness.Grid(runs, measure, summarise) for name, runs in grids.items()},
            "weights": ship_detectors,
        },
        lambda arguments: {"place": get_place(arguments.work, arguments.jobs)},
        jobs=harness.CORES,
        at_once=harness.CORES,
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
    weights = {name: run.weights_in(place.work) for name, run in runs.items()}
    harness.ship_weights({EXTRACTOR: place.network(0), **weights}, extractor=EXTRACTOR)


def train_networks(place: Place, networks: Sequence[int], jobs: int) -> None:
    """Train the extractors that are missing."""
    from studies.drawn_films import draw_films, load_films
    from studies.puppet_net import train_puppet_net

    missing = [number for number in networks if not place.network(number).exists()]
    if not missing:
        return
    films = draw_films(window=16, jobs=jobs)
    held_out = load_films("validation", window=16, jobs=jobs, stride=4)
    for number in missing:
        print(number, train_puppet_net(films, held_out, place.network(number), seed=number))


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
    register_extractor(extractor)
    extract: Any = partial(jostle.extract, films, extractor, subset="training", **options)
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
    changes = dict(treatment.get("data", {}))
    if "drop" in treatment:
        changes["drop"] = {**SETTINGS["drop"], **treatment["drop"], **extractor}
        changes["drop"]["struck"] = changes["drop"]["struck"].format(features=features)
    if "corrupted" in changes:
        changes["corrupted"] = changes["corrupted"].format(features=features)
    weight = weight * treatment.get("weight", 1.0) * SETTINGS["weight"][run.detector]
    return make_settings(
        TrainingConfig,
        {
            "detector": f"{run.detector}_puppets",
            "settings": dict(settings),
            "data": {"features": str(features / "clean"), "truth": str(truth), "train": "training", **changes},
            "optimiser": optimiser,
            "consistency": {"weight": weight, **treatment.get("consistency", {})},
            "seed": run.seed,
            "save_every": 1e9,
        },
    )


summarise = partial(harness.summarise_cells, index=AT_HALF, names=PUPPETS_C)


def train_detector(config: Any, folder: Path) -> Any:
    """Train a detector and return it with its last weights, ready for inference."""
    weights = harness.train_run(config, folder)
    return load_trained(config.detector, weights, **config.settings)


def load_trained(name: str, weights: Path, **settings: Any) -> Any:
    """Load a detector for inference with trained weights, the classes that they know and changed settings."""
    from jostle.models.checkpoints import read_note
    from jostle.models.detection.detector import make_detector

    classes: list[str] = read_note(weights, "classes", [])
    return make_detector(name, weights=weights, class_names=tuple(classes), **settings).to(harness.get_device()).eval()


def measure(run: DetectorRun, place: Place) -> harness.Record:
    """Train a detector, and score it on the test videos in every cell."""
    detector = train_detector(settings_for(run, place), run.folder_in(place.work))
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    states = DetectedStates(detector, read_states(place.states(run.network, "cells"), truth.videos), truth)
    cells = {cell: states.score(AS_IS, cell).map.tolist() for cell in ("clean", *CELLS)}
    return {"cells": cells, "diagnosis": states.errors(AS_IS, PUPPETS_C)}


if __name__ == "__main__":
    harness.run_module("studies.detection")
