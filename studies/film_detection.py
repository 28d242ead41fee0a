"""Feature-based detectors on film: videos joined from clips of UCF101, under the 15 cells of THUMOS14-C.

    python -m studies.film_detection WORK weights features study record --footage FOOTAGE --jobs 12

`features` and `study` need a GPU. Features are those of EfficientNet-Lite0 frame by frame (`lite0`), and of the network
with shifted channels that `studies.film_recognition` trained in the same WORK (`shifted`). Steps and runs that are done
already are skipped. FOOTAGE holds `ucf10/{train,test}/CLASS/*.avi`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.datasets.dataset import Dataset
from studies.detection import CELLS, PUPPETS_C, configure, extract_training, summarise, train_detector
from studies.feature_states import (
    AS_IS,
    WAYS,
    DetectedStates,
    Way,
    load_extractor_file,
    make_states,
    read_states,
    register_extractor,
)
from studies.film_recognition import FilmRun
from studies.harness import CORES, Grid, GridRun, Record, list_runs, load_settings, run_module, run_study, write_records

SETTINGS = load_settings("film_detection")
DETECTORS, SEEDS = tuple(SETTINGS["detectors"]), SETTINGS["seeds"]
TREATMENTS_OF: dict[str, list[str]] = SETTINGS["treatments"]


@dataclass(frozen=True)
class FilmDetectorRun(GridRun):
    """Detector on features of a network, under a treatment."""

    detector: str
    features: str
    treatment: str
    seed: int


def study_runs(networks: Iterable[str] = tuple(TREATMENTS_OF)) -> list[FilmDetectorRun]:
    """Return every run on features of some networks."""
    return [
        run
        for features in networks
        for run in list_runs(
            FilmDetectorRun, features=[features], treatment=TREATMENTS_OF[features], detector=DETECTORS, seed=SEEDS
        )
    ]


def main() -> None:
    """Run the steps that are arguments."""
    run_study(
        __doc__,
        "film_detection",
        {"weights": write_lite0, "features": make_features, "study": Grid(study_runs, measure_run, summarise)},
        derive_data,
        also=("film_found",),
        footage=Path,
        jobs=CORES,
        at_once=CORES,
        networks=tuple(TREATMENTS_OF),
        seeds=SEEDS,
    )


def derive_data(arguments: Any) -> dict[str, Any]:
    """Return the videos of both subsets, and the files of their annotations."""
    load = partial(jostle.load_dataset, "joined-clips", root=arguments.footage / "ucf10", jobs=arguments.jobs)
    data = {subset: load(subset) for subset in ("training", "test")}
    return {"data": data, "truths": {subset: films.folder / f"{subset}.json" for subset, films in data.items()}}


def weights_of(network: str, work: Path) -> Path:
    """Return the weights of an extractor; those with shifted channels are of `studies.film_recognition`."""
    if network == "lite0":
        return work / "film_lite0.safetensors"
    return FilmRun(network, "clean", 0).weights_in(work)


def write_lite0(work: Path) -> None:
    """Write the weights of EfficientNet-Lite0 as an extractor reads them."""
    from torch import nn

    from jostle.models.checkpoints import write_weights
    from studies.film_networks import load_lite

    network = load_lite("lite0")
    network._fc = nn.Identity()
    tensors = {f"network.{key}": value for key, value in network.state_dict().items()}
    write_weights(tensors, weights_of("lite0", work))


def make_features(
    data: Mapping[str, Dataset], truths: Mapping[str, Path], networks: Iterable[str], work: Path, jobs: int
) -> None:
    """Extract the features of the training videos, and of the test videos in every way and cell."""
    main = tuple(CELLS[name] for name in PUPPETS_C)
    plan = [Way(way, mend, tuple(CELLS.values()) if way == AS_IS else main) for way, mend in WAYS.items()]
    for network in networks:
        out, of_frames = work / f"features-{network}", network == "lite0"
        own: dict[str, Any] = {"weights": weights_of(network, work), "truth": truths["training"], "jobs": jobs}
        films = data["training"].folder
        extract_training(films, f"film_{network}", out / "training", ["black_frame"], of_frames=of_frames, **own)
        load = partial(load_extractor_file, f"film_{network}", weights_of(network, work))
        make_states(data["test"], out / "test", load, plan, jobs=jobs)
    write_records(work / "film_found.jsonl", [{"network": name, "found": sum_counts(name, work)} for name in networks])


def sum_counts(network: str, work: Path) -> dict[str, dict[str, list[int]]]:
    """Return, by way and cell, the sums over videos of damaged frames found, damaged, others found, and others."""
    folder = work / f"features-{network}" / "test"
    films = [film.found for film in read_states(folder, [path.stem for path in folder.glob("*.npz")])]
    return {
        way: {cell: np.sum([film[way][cell] for film in films], axis=0).tolist() for cell in cells}
        for way, cells in films[0].items()
    }


def measure_run(run: FilmDetectorRun, work: Path, truths: Mapping[str, Path]) -> Record:
    """Train a detector, and score it on the test videos in every state."""
    register_extractor(f"film_{run.features}")
    features = work / f"features-{run.features}"
    extractor = {"extractor": f"film_{run.features}", "weights": str(weights_of(run.features, work))}
    # The weights of the puppets' study are for sixteen videos a step, here are eight.
    config = configure(
        run,
        features / "training",
        truths["training"],
        extractor,
        optimiser=SETTINGS["optimiser"],
        weight=2.0,
        settings=SETTINGS["detector"],
    )
    detector = train_detector(config, run.folder_in(work))
    truth = jostle.load_truth(truths["test"], subset="test", protocol="thumos14")
    states = DetectedStates(detector, read_states(features / "test", truth.videos), truth)
    scores = {
        way: {cell: [round(value, 5) for value in states.score(way, cell).map.tolist()] for cell in cells}
        for way, cells in states.numbers.items()
    }
    return {"cells": scores.pop(AS_IS), "mended": scores}


if __name__ == "__main__":
    run_module("studies.film_detection")
