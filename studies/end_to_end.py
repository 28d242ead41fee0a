"""Detectors of frames on the puppets: trained whole and with a backbone that is left alone, clean and robustly.

    python -m studies.end_to_end WORK films start study weights

All begin with the same backbone for each detector, as published ones begin with one that knows Kinetics. VSGN, which
looks at features, stands beside them on those of the shipped extractor. Steps that are done already are skipped, so a
run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jostle
from studies.cells import PUPPETS_C
from studies.features import make_features
from studies.measuring import Record, end_with, measure_all
from studies.runs import TIOUS, Place, said
from studies.runs import Run as FeatureRun
from studies.runs import measure as measure_on_features
from studies.struck_films import StruckFilm, make_struck_films, read_struck_films

FRAMES = ("afsd", "basictad", "e2e_tad")
FEATURES = ("vsgn",)
SEEDS = (0, 1)
STEPS = ("films", "start", "study", "weights")
SHIPPED = {"clean": "clean", "robust": "drop"}
SHIPPED_DETECTORS = ("e2e_tad", "vsgn")  # the smallest, 10 MB together
BLACK = {"placement": "pair"}
# Of the consistency term beside a detector's own losses, where it is a mean over what answers for an action.
WEIGHT = 1.0
RATE = 1e-3
CLIPS_AT_ONCE = 32  # of a film, looked at together
BELOW = 0.3  # share of it that a backbone has which learns on
# Queries find out late which of them answers for what.
EPOCHS = {"afsd": 20, "basictad": 20, "e2e_tad": 60}
OPTIMISER: dict[str, Any] = {"batch": 16, "warmup_epochs": 1, "average": 0.98, "weight_decay": 0.05}


@dataclass(frozen=True)
class Treatment:
    """A way to train.

    Attributes:
        data: changes to `data`.
        weight: of the consistency.
        frozen: whether the backbone is left as it begins.
    """

    data: Mapping[str, Any]
    weight: float = 0.0
    frozen: bool = False


TREATMENTS = {
    "clean": Treatment({}),
    "frozen, clean": Treatment({}, frozen=True),
    "drop": Treatment({"drop": BLACK, "learn_from": "corrupted"}),
    "drop + TRC": Treatment({"drop": BLACK}, WEIGHT),
    "frozen, drop": Treatment({"drop": BLACK, "learn_from": "corrupted"}, frozen=True),
}
ON_FEATURES = ("clean", "drop", "drop + TRC")


@dataclass(frozen=True)
class Run:
    """One training run."""

    detector: str
    treatment: str
    seed: int

    @property
    def folder(self) -> str:
        words = f"{self.detector} {self.treatment} {self.seed}"
        return "".join(letter if letter.isalnum() else "-" for letter in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="folder for films and runs")
    parser.add_argument("steps", nargs="+", choices=STEPS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--at-once", type=int, default=12, help="runs that share the GPU")
    parser.add_argument("--detectors", nargs="+", default=(*FRAMES, *FEATURES), help="only these")
    parser.add_argument("--treatments", nargs="+", default=tuple(TREATMENTS), help="only these of the study")
    parser.add_argument("--minutes", type=float, default=6.0, help="stop teaching backbones after so long")
    parser.add_argument("--results", type=Path, default=None)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    results = given.results or given.work / "end_to_end.jsonl"
    place = Place(given.work, jostle.load_dataset("puppets", "test", jobs=given.jobs).folder / "annotations.json")
    if "films" in given.steps:
        make_films(place, given.detectors, given.jobs)
    if "start" in given.steps:
        from studies.end_to_end_start import learn_to_see

        chosen = [name for name in FRAMES if name in given.detectors]
        learn_to_see(chosen, given.work / "start", jobs=given.jobs, minutes=given.minutes)
    if "study" in given.steps:
        runs = [run for run in study() if run.detector in given.detectors and run.treatment in given.treatments]
        end_with(measure_all(runs, partial(measure, place=place), results, at_once=given.at_once, said=said))
    if "weights" in given.steps:
        from studies.recognition import ship_weights

        for detector in SHIPPED_DETECTORS:
            runs = {f"{detector}_puppets-{name}": Run(detector, how, 0) for name, how in SHIPPED.items()}
            notes = {"extractor": "puppet_net"} if detector in FEATURES else {}
            ship_weights({name: place.work / "runs" / folder_of(run) for name, run in runs.items()}, **notes)


def study() -> list[Run]:
    """Every run of docs/results.md."""
    made = [Run(detector, treatment, seed) for treatment in TREATMENTS for detector in FRAMES for seed in SEEDS]
    return made + [
        Run(detector, treatment, seed) for treatment in ON_FEATURES for detector in FEATURES for seed in SEEDS
    ]


def make_films(place: Place, detectors: Collection[str], jobs: int) -> None:
    """What is learned from and tested on: pictures for detectors of frames, and features of the shipped extractor."""
    from jostle.models.detection.detector import load_detector
    from jostle.models.weights.shipped import FOLDER
    from jostle.training.end_to_end_config import FramesConfig
    from jostle.training.frame_store import load_films

    for detector in [name for name in FRAMES if name in detectors]:
        name = f"{detector}_puppets"
        config = FramesConfig(jobs=jobs)
        built: Any = load_detector(name)
        load_films(config, "training", built, seeds=config.seeds, name=name, settings={})
        make_struck_films(name, place.work / "struck" / detector, jobs=jobs)
    if not set(FEATURES) & set(detectors):
        return
    if not place.network(0).exists():
        place.network(0).write_bytes((FOLDER / "puppet_net.safetensors").read_bytes())
    for subset in ("training", "test"):
        if not place.features(0, subset).exists():
            make_features(subset, place.network(0), place.features(0, subset), jobs=jobs, fixed=(), cells=PUPPETS_C)


def settings_for(run: Run, place: Place) -> Any:
    """The settings of one training run."""
    from jostle.core.config import make_settings
    from jostle.training.end_to_end_config import FrameTrainingConfig

    treatment = TREATMENTS[run.treatment]
    return make_settings(
        FrameTrainingConfig,
        {
            "detector": f"{run.detector}_puppets",
            "data": {"views": 2, **treatment.data},
            "optimiser": {**OPTIMISER, "lr": RATE, "epochs": EPOCHS[run.detector]},
            "consistency": {"weight": treatment.weight},
            "backbone_rate": 0.0 if treatment.frozen else BELOW,
            "backbone_weights": str(place.work / "start" / f"{run.detector}.safetensors"),
            "seed": run.seed,
            "save_every": 1e9,
        },
    )


def on_features(run: Run) -> FeatureRun:
    """A run of a detector of features, on those of the shipped extractor."""
    return FeatureRun(run.detector, run.treatment, run.seed, 0)


def folder_of(run: Run) -> str:
    """Where a run lies."""
    return on_features(run).folder if run.detector in FEATURES else run.folder


def measure(run: Run, place: Place) -> Record:
    """Train a detector, and score it on the test films in every cell."""
    if run.detector in FEATURES:
        return {**measure_on_features(on_features(run), place, cells=PUPPETS_C), "run": asdict(run)}
    import torch

    from jostle.models.checkpoints import read_metadata
    from jostle.models.detection.detector import load_detector
    from jostle.training.loop import train
    from jostle.training.memory_format import channels_last_on_gpu

    begun_at = time.monotonic()
    config = settings_for(run, place)
    done = train(config, place.work / "runs" / run.folder)
    trained = time.monotonic()
    (place.work / "runs" / run.folder / "checkpoint.safetensors").unlink(missing_ok=True)
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    names = tuple(json.loads(read_metadata(done.weights)["classes"]))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    detector: Any = load_detector(config.detector, weights=done.weights, class_names=names).to(device).eval()
    channels_last_on_gpu(detector, detector.device)
    cells = {
        cell: jostle.score(found, truth, protocol="thumos14", tious=TIOUS).map.tolist()
        for cell, found in detections(detector, read_struck_films(place.work / "struck" / run.detector)).items()
    }
    seconds = [round(trained - begun_at, 1), round(time.monotonic() - trained, 1)]
    return {"run": asdict(run), "cells": cells, "seconds": seconds}


def detections(detector: Any, films: Iterable[StruckFilm]) -> dict[str, Any]:
    """What is found in each cell; clips that nothing struck are looked at once, and many of a film together."""
    from jostle.core.types.predictions import Predictions

    found: dict[str, dict[str, Any]] = {cell: {} for cell in ("clean", *PUPPETS_C)}
    for film in films:
        count, clean = len(film.clean), detector.prepare(film.clean)
        firsts = detector.clips(count)
        wanted = [("clean", first) for first in firsts]
        states = {"clean": clean}
        for cell, (at, frames) in film.struck.items():
            touched = [first for first in firsts if ((at >= first) & (at < first + detector.config.max_length)).any()]
            if touched:
                states[cell] = clean.clone()
                states[cell][:, at] = detector.prepare(frames)
                wanted += [(cell, first) for first in touched]
        made = dict(zip(wanted, _answers(detector, states, wanted), strict=True))
        for cell in found:
            parts = [(first, made.get((cell, first), made["clean", first])) for first in firsts]
            found[cell][film.name] = detector.to_seconds(detector.merge_clips(parts, count), film.rate, film.duration)
    return {cell: Predictions.from_segments(segments) for cell, segments in found.items()}


def _answers(detector: Any, states: Mapping[str, Any], wanted: Sequence[tuple[str, int]]) -> list[Any]:
    """What a detector makes of clips, each a state and a first frame."""
    import torch

    made: list[Any] = []
    for lo in range(0, len(wanted), CLIPS_AT_ONCE):
        clips = torch.cat([detector.clip(states[cell], first) for cell, first in wanted[lo : lo + CLIPS_AT_ONCE]])
        with torch.inference_mode():
            made += detector.decode(detector.infer(detector, clips))
    return made


if __name__ == "__main__":
    main()
