"""Recognisers on film: ten classes of UCF101 under Kinetics-C and UCF101-P, with intervals over groups of clips.

    python -m studies.film_recognition WORK cells study record --footage FOOTAGE

`cells` corrupts the test clips, on all cores; `study` trains and scores, on a GPU where there is one. `networks` only
trains the networks with shifted channels, for other studies. Steps and runs that are done already are skipped. FOOTAGE
holds `ucf10/{train,test}/CLASS/*.avi`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.settings import make_settings
from jostle.training.clips import VideoClip, list_videos
from jostle.training.recognition_config import ClipsConfig, RecognitionConfig
from studies import harness
from studies.recognition import CELLS, TREATMENTS, load_cells, make_cells, predict_cells

SETTINGS = harness.load_settings("film_recognition")
NETWORKS: dict[str, str] = SETTINGS["networks"]
OWN: dict[str, str] = SETTINGS["models"]
SEEDS: list[int] = SETTINGS["seeds"]


@dataclass(frozen=True)
class FilmRun(harness.GridRun):
    """Training run of a recogniser on film."""

    network: str
    treatment: str
    seed: int


def study_runs() -> list[FilmRun]:
    """Return every network on clean clips, and the one that is learned whole also on a mix of corruptions."""
    clean = harness.list_runs(FilmRun, network=NETWORKS, treatment=["clean"], seed=SEEDS)
    return harness.list_runs(FilmRun, network=["shifted"], treatment=["mix"], seed=SEEDS) + clean[::-1]


def main() -> None:
    """Run the steps that are arguments."""
    study = harness.Grid(study_runs, measure_run, summarise)
    steps = {"cells": corrupt_clips, "networks": train_shifted, "study": study}
    harness.run_study(__doc__, "film_recognition", steps, footage=Path, jobs=harness.CORES, at_once=4, seeds=SEEDS)


def corrupt_clips(work: Path, footage: Path, jobs: int) -> None:
    """Corrupt the test clips in every cell."""
    make_cells(work / "cells", test_clips(footage), frames=SETTINGS["frames"], size=SETTINGS["size"], jobs=jobs)


def train_shifted(work: Path, footage: Path, at_once: int, seeds: Collection[int]) -> None:
    """Train the networks with shifted channels alone, for other studies."""
    runs = [run for run in study_runs() if run.network == "shifted" and run.seed in seeds]
    harness.map_in_processes(partial(train_network, work=work, footage=footage), runs, at_once)


def clips_config(footage: Path, **changes: Any) -> ClipsConfig:
    """Return the settings of the clips."""
    return ClipsConfig(dataset="folder", root=str(footage / "ucf10"), train="train", select=0.0, **changes)


def test_clips(footage: Path) -> list[VideoClip]:
    """Return the clips that recognisers are tested on."""
    return list_videos(clips_config(footage), "test", seeds=(0,))[1]


def settings_for(run: FilmRun, footage: Path, work: Path) -> RecognitionConfig:
    """Return the settings of one training run."""
    which: Mapping[str, Any] = {"recogniser": run.network, "weights": "clean"}
    if run.network in OWN:
        which = {"model": OWN[run.network]}
    own = {
        "data": asdict(clips_config(footage, mirror=True, cache=str(work / "clips"), jobs=2)),
        "optimiser": SETTINGS["optimiser"]["frozen" if run.network.startswith("lite") else "whole"],
        "seed": run.seed,
    }
    settings = harness.merge_settings(SETTINGS["config"], TREATMENTS[run.treatment], which, own)
    return make_settings(RecognitionConfig, settings)


def load_network(run: FilmRun, weights: Path) -> tuple[Any, Any]:
    """Return the trained network of a run and its input spec."""
    from jostle.models.checkpoints import read_weights
    from jostle.models.loading.recognisers import load_recogniser
    from jostle.models.recognition.recogniser import load_user_recogniser

    tensors = read_weights(weights)
    if run.network in OWN:
        recogniser = load_user_recogniser(OWN[run.network], 10, {}, option="model", weights=tensors)
    else:
        recogniser = load_recogniser(run.network, weights=tensors)
    return recogniser.network, recogniser.spec


def train_network(run: FilmRun, work: Path, footage: Path) -> Path:
    """Train a recogniser, and return the path of its weights."""
    return harness.train_run(settings_for(run, footage, work), run.folder_in(work), one_shape=True)


def measure_run(run: FilmRun, work: Path, footage: Path) -> harness.Record:
    """Train a recogniser, and predict the class of the test clips in every cell."""
    network, spec = load_network(run, train_network(run, work, footage))
    clips, labels = load_cells(work / "cells")
    right = predict_cells(network.to(harness.get_device()).eval(), spec, clips) == labels
    return {
        "clips": [video.name for video in test_clips(footage)],
        "right": {cell: "".join("01"[hit] for hit in hits) for cell, hits in zip(CELLS, right.tolist(), strict=True)},
    }


def summarise(record: harness.Record) -> str:
    """Return the clean and the corrupted score of a run, to be printed."""
    shares = {cell: right.count("1") / len(right) for cell, right in record["right"].items()}
    corrupted = np.mean([shares[cell] for cell in CELLS[1:]])
    return f"clean {100 * shares['clean']:.1f} corrupted {100 * corrupted:.1f}"


if __name__ == "__main__":
    harness.run_module("studies.film_recognition")
