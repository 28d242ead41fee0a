"""Recognisers on film: ten classes of UCF101 under Kinetics-C and UCF101-P, with intervals over groups of clips.

    python -m studies.film_recognition WORK cells study record --footage FOOTAGE

`cells` corrupts the test clips, on all cores; `study` trains and scores, on a GPU where there is one. `networks` only
trains the networks with shifted channels, for other studies. Steps and runs that are done already are skipped. FOOTAGE
holds `ucf10/{train,test}/CLASS/*.avi`.
"""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.config import make_settings
from jostle.training.clips import VideoClip, list_videos
from jostle.training.recognition_config import ClipsConfig, RecognitionConfig
from studies.harness import CORES, STUDIES, GridRun, Record, finish, parse_arguments, read_records, run_grid
from studies.recognition import CELLS, TREATMENTS, TestClips, load_cells, make_cells

STEPS = ("cells", "networks", "study", "record")
RESULTS = STUDIES / "film_recognition.jsonl"
SEEDS = (0, 1, 2)
SIZE, FRAMES = (240, 320), 8
NETWORKS = {
    "lite0": "EfficientNet-Lite0, frozen",
    "lite1": "EfficientNet-Lite1, frozen",
    "lite2": "EfficientNet-Lite2, frozen",
    "shifted": "EfficientNet-Lite0, shifted channels",
    "puppet_r2plus1d": "(2+1)D, from puppets",
}
OWN = {
    "lite0": "studies.film_networks:frozen_lite0",
    "lite1": "studies.film_networks:frozen_lite1",
    "lite2": "studies.film_networks:frozen_lite2",
    "shifted": "studies.film_networks:shifted_lite0",
}
FROZEN = {"lr": 3e-3, "warmup_epochs": 1, "epochs": 29, "batch": 32, "average": 0.9}
WHOLE = {"lr": 3e-4, "warmup_epochs": 2, "epochs": 38, "batch": 16, "average": 0.95}
AT_ONCE = 40  # clips in a batch
read_results = partial(read_records, RESULTS)


@dataclass(frozen=True)
class FilmRun(GridRun):
    """One training run."""

    network: str
    treatment: str
    seed: int


def study_runs() -> list[FilmRun]:
    """Return every network on clean clips, and the one that is learned whole also on a mix of corruptions."""
    runs = [FilmRun(network, "clean", seed) for network in NETWORKS for seed in SEEDS]
    return [FilmRun("shifted", "mix", seed) for seed in SEEDS] + runs[::-1]


def main() -> None:
    """Do the steps that are arguments."""
    arguments = parse_arguments(__doc__, STEPS, footage=Path, jobs=CORES, at_once=4, seeds=list(SEEDS))
    results = arguments.work / RESULTS.name
    if "cells" in arguments.steps:
        begin = time.monotonic()
        make_cells(
            arguments.work / "cells", test_clips(arguments.footage), frames=FRAMES, size=SIZE, jobs=arguments.jobs
        )
        print(f"cells: {time.monotonic() - begin:.0f} s", flush=True)
    if "networks" in arguments.steps:
        runs = [run for run in study_runs() if run.network == "shifted" and run.seed in arguments.seeds]
        with ProcessPoolExecutor(arguments.at_once, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(partial(train_run, work=arguments.work, footage=arguments.footage), runs))
    if "study" in arguments.steps:
        measure = partial(measure_run, work=arguments.work, footage=arguments.footage)
        finish(run_grid(study_runs(), measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)


def clips_config(footage: Path, **changes: Any) -> ClipsConfig:
    """Return the settings of the clips."""
    return ClipsConfig(dataset="folder", root=str(footage / "ucf10"), train="train", select=0.0, **changes)


def test_clips(footage: Path) -> list[VideoClip]:
    """Return the clips that recognisers are tested on."""
    return list_videos(clips_config(footage), "test", seeds=(0,))[1]


def settings_for(run: FilmRun, footage: Path, work: Path) -> RecognitionConfig:
    """Return the settings of one training run."""
    data = asdict(clips_config(footage, mirror=True, cache=str(work / "clips"), jobs=2))
    which: Mapping[str, Any] = {"recogniser": run.network, "weights": "clean"}
    if run.network in OWN:
        which = {"model": OWN[run.network]}
    return make_settings(
        RecognitionConfig,
        {
            **which,
            "data": data,
            "optimiser": FROZEN if run.network.startswith("lite") else WHOLE,
            "seed": run.seed,
            "precision": "bfloat16",
            "save_every": 1e9,
            **TREATMENTS[run.treatment],
        },
    )


def load_network(run: FilmRun, weights: Path) -> tuple[Any, Any]:
    """Return the trained network of a run and its input spec."""
    from jostle.models.checkpoints import read_weights
    from jostle.models.recognition.recogniser import load_recogniser, load_user_recogniser

    tensors = read_weights(weights)
    if run.network in OWN:
        recogniser = load_user_recogniser(OWN[run.network], 10, {}, option="model", weights=tensors)
    else:
        recogniser = load_recogniser(run.network, weights=tensors)
    return recogniser.network, recogniser.spec


def train_run(run: FilmRun, work: Path, footage: Path) -> Path:
    """Train a recogniser, and return the path of its weights."""
    import torch

    from jostle.training.loop import train

    torch.backends.cudnn.benchmark = True  # clips have one shape
    folder = work / "runs" / run.folder
    weights = train(settings_for(run, footage, work), folder).weights
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    return weights


def measure_run(run: FilmRun, work: Path, footage: Path) -> Record:
    """Train a recogniser, and predict the class of the test clips in every cell."""
    import torch

    begin = time.monotonic()
    weights = train_run(run, work, footage)
    trained = time.monotonic()
    network, spec = load_network(run, weights)
    network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    clips = load_cells(work / "cells")
    right = {cell: predict_film_classes(network, spec, clips, n) == clips.label for n, cell in enumerate(CELLS)}
    return {
        "run": asdict(run),
        "clips": [video.name for video in test_clips(footage)],
        "right": {cell: "".join("01"[hit] for hit in hits.tolist()) for cell, hits in right.items()},
        "seconds": [round(trained - begin, 1), round(time.monotonic() - trained, 1)],
    }


def predict_film_classes(network: Any, spec: Any, clips: TestClips, cell: int) -> npt.NDArray[np.int64]:
    """Return (N,) the predicted class of each clip of a cell."""
    import torch

    device = next(network.parameters()).device
    # A network of more frames than are kept sees some of them twice.
    frames = np.arange(spec.frames) * FRAMES // spec.frames
    classes = []
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16):
        for lo in range(0, len(clips.label), AT_ONCE):
            batch = torch.from_numpy(np.array(clips.frames[cell, lo : lo + AT_ONCE])).to(device)[:, frames]
            pictures = spec.prepare_frames(batch.flatten(0, 1)).unflatten(0, batch.shape[:2])
            classes.append(network(pictures.transpose(1, 2)).argmax(1))
    return torch.cat(classes).cpu().numpy()


def summarise(record: Record) -> str:
    """Return the clean and the corrupted score of a run, to be printed."""
    shares = {cell: right.count("1") / len(right) for cell, right in record["right"].items()}
    corrupted = np.mean([shares[cell] for cell in CELLS[1:]])
    return f"clean {100 * shares['clean']:.1f} corrupted {100 * corrupted:.1f}"


if __name__ == "__main__":
    from studies import film_recognition  # the name by which worker processes find the runs

    film_recognition.main()
