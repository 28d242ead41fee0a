"""Train and measure: one run is a detector, a treatment, and the seeds of detector and extractor."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from studies.cells import CELLS, PUPPETS_C
from studies.measuring import Record
from studies.treatments import settings_for

TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True)
class Run:
    """One training run and the extractor under it."""

    detector: str
    treatment: str
    seed: int
    network: int

    @property
    def folder(self) -> str:
        words = f"{self.detector} {self.treatment} {self.seed} {self.network}"
        return "".join(letter if letter.isalnum() else "-" for letter in words)


@dataclass(frozen=True)
class Place:
    """Where the study lies."""

    work: Path
    truth: Path

    def network(self, number: int) -> Path:
        return self.work / f"puppet_net-{number}.safetensors"

    def features(self, number: int, subset: str) -> Path:
        return self.work / f"features-{number}" / subset

    def films(self, number: int) -> Path:
        """What the study of mending makes of test films."""
        return self.work / f"films-{number}"


def said(record: Record) -> str:
    """The two numbers of a run that one looks at first."""
    cells = record["cells"]
    corrupted = np.mean([cells[name][2] for name in PUPPETS_C])
    return f"clean {100 * cells['clean'][2]:.2f} corrupted {100 * corrupted:.2f}"


def measure(run: Run, place: Place, cells: Collection[str] = tuple(CELLS)) -> Record:
    """Train a detector, and score it on the test videos in these cells."""
    import torch

    from jostle.models.checkpoints import read_metadata
    from jostle.models.detection.detector import load_detector
    from jostle.training.loop import train

    device = "cuda" if torch.cuda.is_available() else "cpu"
    begun = time.monotonic()
    config = settings_for(
        run.detector,
        run.treatment,
        features=place.features(run.network, "training"),
        truth=place.truth,
        network=place.network(run.network),
        seed=run.seed,
    )
    done = train(config, place.work / "runs" / run.folder)
    trained = time.monotonic()
    (place.work / "runs" / run.folder / "checkpoint.safetensors").unlink(missing_ok=True)
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    names = tuple(json.loads(read_metadata(done.weights)["classes"]))
    detector = load_detector(config.detector, weights=done.weights, class_names=names).to(device).eval()
    test = place.features(run.network, "test")
    states = {"clean": test / "clean"} | {name: test / f"cell-{i}" for i, name in enumerate(CELLS) if name in cells}
    scores, profiles = {}, {}
    for name, folder in states.items():
        found = detections(detector, folder, truth)
        scores[name] = jostle.score(found, truth, protocol="thumos14", tious=TIOUS).map.tolist()
        if name == "clean" or name in PUPPETS_C:
            profiles[name] = profile_of(found, truth)
    clean = profiles.pop("clean")
    corrupted = {key: float(np.mean([profile[key] for profile in profiles.values()])) for key in clean}
    seconds = [round(trained - begun, 1), round(time.monotonic() - trained, 1)]
    return {
        "run": asdict(run),
        "cells": scores,
        "diagnosis": {"clean": clean, "corrupted": corrupted},
        "seconds": seconds,
    }


def detections(detector: Any, folder: Path, truth: Any) -> Any:
    """What a detector finds in the feature files of a folder."""
    from jostle.core.types.predictions import Predictions

    found = {
        name: detector.detect(np.load(folder / f"{name}.npy"), fps=float(fps), duration=float(duration))
        for name, fps, duration in zip(truth.videos, truth.fps, truth.duration, strict=True)
    }
    return Predictions.from_segments(found)


def profile_of(found: Any, truth: Any) -> dict[str, float]:
    """What each kind of error costs, in average mAP_N, and the share of actions that are missed."""
    told = jostle.diagnose(found, truth, style="thumos14").to_dict()
    return {**told["false_positives"]["impact"], "missed": told["false_negatives"]["overall"]}
