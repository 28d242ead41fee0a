"""End-to-end detectors on the puppets: trained whole and with a frozen backbone, clean and robustly.

    python -m studies.end_to_end WORK films start study weights

Detectors begin with the same pretrained backbone, as published ones begin with one trained on Kinetics. VSGN, which is
feature-based, uses the shipped extractor. Steps and runs that are done already are skipped.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jostle
from jostle.core.settings import make_settings
from jostle.evaluation.recipes.selection import select_cells
from studies import harness
from studies.detection import (
    PUPPETS_C,
    RECIPE,
    SHIPPED,
    DetectorRun,
    Place,
    get_place,
    make_test_features,
    make_training_features,
    summarise,
)
from studies.detection import measure as measure_on_features
from studies.feature_states import TIOUS

SETTINGS = harness.load_settings("end_to_end")
FRAMES, FEATURES, SEEDS = (tuple(SETTINGS[name]) for name in ("frames", "features", "seeds"))
TREATMENTS: dict[str, dict[str, Any]] = SETTINGS["treatments"]


@dataclass(frozen=True)
class EndToEndRun(harness.GridRun):
    """Training run of an end-to-end detector, or of VSGN."""

    detector: str
    treatment: str
    seed: int

    @property
    def on_features(self) -> DetectorRun:
        """The same run of a feature-based detector, on features of the shipped extractor."""
        return DetectorRun(self.detector, self.treatment, self.seed, 0)


def study_runs() -> list[EndToEndRun]:
    """Return every run of docs/results/."""
    grids = [(FRAMES, tuple(TREATMENTS)), (FEATURES, SETTINGS["on_features"])]
    return [
        run
        for names, treatments in grids
        for run in harness.list_runs(EndToEndRun, treatment=treatments, detector=names, seed=SEEDS)
    ]


def main() -> None:
    """Run the steps that the command line names."""
    harness.run_study(
        __doc__,
        "end_to_end",
        {
            "films": make_films,
            "start": pretrain,
            "study": harness.Grid(study_runs, measure, summarise),
            "weights": ship_detectors,
        },
        lambda arguments: {"place": get_place(arguments.work, arguments.jobs)},
        jobs=harness.CORES,
        at_once=12,
        detectors=(*FRAMES, *FEATURES),
        treatments=tuple(TREATMENTS),
        minutes=6.0,
    )


def make_films(place: Place, detectors: Collection[str], jobs: int) -> None:
    """Prepare training data: frames for end-to-end detectors, features of the shipped extractor for VSGN."""
    from jostle.models.detection.detector import make_detector
    from jostle.training.detection_config import FramesConfig
    from jostle.training.frame_store import load_films

    for detector in [name for name in FRAMES if name in detectors]:
        name = f"{detector}_puppets"
        config = FramesConfig(jobs=jobs)
        load_films(config, "training", make_detector(name), seeds=config.seeds, name=name, settings={})
    if set(FEATURES) & set(detectors):
        place.take_network()
        make_training_features(place, 0, jobs, fixed=())
        make_test_features(place, 0, jobs)


def pretrain(work: Path, detectors: Collection[str], jobs: int, minutes: float) -> None:
    """Pretrain the backbones of some detectors."""
    from studies.backbones import pretrain_backbones

    chosen = [name for name in FRAMES if name in detectors]
    pretrain_backbones(chosen, work / "start", jobs=jobs, minutes=minutes)


def ship_detectors(place: Place) -> None:
    """Put the smallest detectors into the package."""
    for detector in SETTINGS["shipped"]:
        runs = {f"{detector}_puppets-{name}": EndToEndRun(detector, how, 0) for name, how in SHIPPED.items()}
        notes = {"extractor": "puppet_net"} if detector in FEATURES else {}
        trained = {name: run.on_features if detector in FEATURES else run for name, run in runs.items()}
        harness.ship_weights({name: run.weights_in(place.work) for name, run in trained.items()}, **notes)


def settings_for(run: EndToEndRun, place: Place) -> Any:
    """Return the settings of one training run."""
    from jostle.training.detection_config import FrameTrainingConfig

    own = {
        "detector": f"{run.detector}_puppets",
        "optimiser": {"epochs": SETTINGS["epochs"][run.detector]},
        "backbone_weights": str(place.work / "start" / f"{run.detector}.safetensors"),
        "seed": run.seed,
    }
    settings = harness.merge_settings(SETTINGS["config"], TREATMENTS[run.treatment], own)
    return make_settings(FrameTrainingConfig, settings)


def measure(run: EndToEndRun, place: Place) -> harness.Record:
    """Train a detector, and score it on the test films in every cell."""
    if run.detector in FEATURES:
        record = measure_on_features(run.on_features, place)
        return {**record, "cells": {cell: record["cells"][cell] for cell in ("clean", *PUPPETS_C)}}
    weights = harness.train_run(settings_for(run, place), run.folder_in(place.work))
    out = run.folder_in(place.work) / "cells"
    jostle.run(RECIPE.name, model=f"{run.detector}_puppets", weights=weights, out=out, jobs=1, model_processes=0)
    return {"cells": {cell: score.map.tolist() for cell, score in score_cells(out).items()}}


def score_cells(out: Path) -> dict[str, Any]:
    """Return the scores of the predictions of a run folder in every cell of `puppets-c`."""
    predictions = {
        cell.name: jostle.load_predictions(out / "predictions" / f"{cell.slug}.json") for cell in select_cells(RECIPE)
    }
    truth = jostle.load_truth(out / "truth.json", protocol="thumos14").of_videos(sorted(predictions["clean"].videos))
    return {cell: jostle.score(own, truth, protocol="thumos14", tious=TIOUS) for cell, own in predictions.items()}


if __name__ == "__main__":
    harness.run_module("studies.end_to_end")
