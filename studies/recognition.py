"""Recognisers x treatments x seeds on trimmed puppets: from a seed to the shipped weights and the numbers of the docs.

    python -m studies.recognition WORK start cells study weights

Steps and runs that are done already are skipped, so a study that was stopped goes on. `start` needs a GPU and `cells`
the cores: named together they work side by side.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.config import make_settings
from jostle.datasets.puppets.film import CLASSES
from jostle.evaluation.recipes.kinetics_c import SPATIAL, TEMPORAL
from jostle.training.recognition_config import RecognitionConfig
from studies.measuring import alone, end_with, measure_all
from studies.recognition_cells import CELLS, TWIN, TestClips, load_cells, make_cells

RECOGNISERS = ("puppet_c3d", "puppet_r2plus1d", "puppet_x3d", "puppet_divided", "puppet_slowfast", "puppet_tam")
SHIPPED_RECOGNISERS = RECOGNISERS[:4]  # the two of the papers' own layout are twice as large, and are not kept
WIDE = "puppet_tam_wide"  # four times the weights of its narrow kin, under the treatments that tell what these buy
WIDE_TREATMENTS = ("clean", "mix")
SEEDS = (0, 1, 2)
SINGLE = "puppet_r2plus1d"  # learns from one corruption at a time, too
STEPS = ("start", "cells", "study", "singles", "weights")

OPTIMISER: dict[str, Any] = {
    "lr": 1e-3,
    "warmup_epochs": 1,
    "epochs": 14,
    "batch": 32,
    "average": 0.98,
    "average_ramp": False,
}
SPACE = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "static_rotate", "rotate", "translate")
TIME = ("jumble", "freeze", "sampling")


def _p(*names: str) -> list[str]:
    return [f"ucf101-p/{name}" for name in names]


TREATMENTS: dict[str, dict[str, Any]] = {
    "clean": {},
    "noise": {"noise": {"std": 0.1}},
    "mix": {
        "corruptions": {
            "specs": _p("jpeg_compression", *SPACE, "sampling", "reverse_sampling", "jumble", "box_jumble", "freeze"),
            "severities": [1, 2, 3],
            "draws": 3,
        }
    },
    "temporal": {"corruptions": {"specs": _p(*TIME), "severities": [1, 2, 3], "draws": 3}},
    "patterns": {"patterns": {"share": 0.75}},
}
SINGLES: dict[str, dict[str, Any]] = {
    f"only {name}": {"corruptions": {"specs": [f"kinetics-c/{name}:3"], "share": 1.0, "draws": 1}}
    for name in (*SPATIAL, *TEMPORAL)
}
SHIPPED = {"clean": "clean", "robust": "mix"}


@dataclass(frozen=True)
class Run:
    """One training run."""

    recogniser: str
    treatment: str
    seed: int

    @property
    def folder(self) -> str:
        words = f"{self.recogniser} {self.treatment} {self.seed}"
        return "".join(letter if letter.isalnum() else "-" for letter in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="folder for networks, clips and runs")
    parser.add_argument("steps", nargs="+", choices=STEPS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that draw and corrupt")
    parser.add_argument("--at-once", type=int, default=6, help="runs that share the GPU")
    parser.add_argument("--clips", type=int, default=15, help="test clips of each class")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--results", type=Path, default=None)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    results = given.results or given.work / "recognition.jsonl"
    begun = time.monotonic()
    starting = _start_all(given.work, given.jobs) if "start" in given.steps else None
    if "cells" in given.steps:
        make_cells(given.work / "cells", jobs=given.jobs, clips=given.clips)
        print(f"cells: {time.monotonic() - begun:.0f} s", flush=True)
    wanted = {"study": study_runs, "singles": single_runs}
    runs = [run for step, those in wanted.items() if step in given.steps for run in those(given.seeds)]
    for treatment in dict.fromkeys(run.treatment for run in runs):
        prepare(treatment, given.work, given.jobs)
    print(f"clips to learn from: {time.monotonic() - begun:.0f} s", flush=True)
    if starting is not None:
        starting()
        print(f"networks to begin with: {time.monotonic() - begun:.0f} s", flush=True)
    end_with(measure_all(runs, partial(measure, work=given.work), results, at_once=given.at_once, said=said))
    if "weights" in given.steps:
        ship(given.work)
    print(f"all: {time.monotonic() - begun:.0f} s", flush=True)


def study_runs(seeds: Iterable[int] = SEEDS) -> list[Run]:
    """Every recogniser under every treatment, and the wide one."""
    pairs = [(WIDE, t) for t in WIDE_TREATMENTS]
    pairs += [(r, t) for r in reversed(RECOGNISERS) for t in TREATMENTS]
    return [Run(recogniser, treatment, seed) for recogniser, treatment in pairs for seed in seeds]


def single_runs(seeds: Iterable[int] = SEEDS) -> list[Run]:
    """One recogniser that learns from one corruption at a time."""
    return [Run(SINGLE, treatment, seed) for treatment in SINGLES for seed in seeds]


def _start_all(work: Path, jobs: int) -> Any:
    """Begin the networks that have no weights yet, each in a process; gives what waits for them."""
    left = [name for name in (*RECOGNISERS, WIDE) if not _start_of(work, name).exists()]
    if not left:
        return lambda: None
    from studies.recognition_films import draw_clips

    clips = draw_clips(jobs=jobs)
    for part in ("frames", "joints", "label"):
        np.save(work / f"drawn-{part}.npy", getattr(clips, part))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_start_one, args=(name, work)) for name in left]
    for process in processes:
        process.start()

    def wait() -> None:
        for name, process in zip(left, processes, strict=True):
            process.join()
            assert process.exitcode == 0, f"{name} did not begin"
        for part in ("frames", "joints", "label"):
            (work / f"drawn-{part}.npy").unlink()

    return wait


def _start_one(name: str, work: Path) -> None:
    from studies.recognition_films import DrawnClips
    from studies.recognition_start import learn_to_see

    alone()
    parts = {part: np.load(work / f"drawn-{part}.npy", mmap_mode="c") for part in ("frames", "joints", "label")}
    learn_to_see(name, DrawnClips(**parts), _start_of(work, name))


def _start_of(work: Path, name: str) -> Path:
    return work / f"start-{name}.safetensors"


def settings_for(run: Run, work: Path, *, jobs: int = 1) -> RecognitionConfig:
    """The settings of one training run."""
    return make_settings(
        RecognitionConfig,
        {
            "recogniser": run.recogniser,
            "data": {"select": 0.0, "mirror": True, "cache": str(work / "clips"), "jobs": jobs},
            "optimiser": OPTIMISER,
            "weights": str(_start_of(work, run.recogniser)),
            "seed": run.seed,
            "precision": "bfloat16",
            "save_every": 1e9,
            **(TREATMENTS | SINGLES)[run.treatment],
        },
    )


def prepare(treatment: str, work: Path, jobs: int) -> None:
    """Have the clips of a treatment read and corrupted before the runs need them."""
    from jostle.training.recognition import load_split

    load_split(settings_for(Run(RECOGNISERS[0], treatment, 0), work, jobs=jobs))


def said(record: dict[str, Any]) -> str:
    """The two numbers of a run that one looks at first."""
    cells = record["cells"]
    corrupted = np.mean([cells[name][0] for name in CELLS[1:]])
    return f"clean {100 * cells['clean'][0]:.1f} corrupted {100 * corrupted:.1f}"


def measure(run: Run, work: Path) -> dict[str, Any]:
    """Train a recogniser, and score it on the test clips in every cell."""
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.recognition.recogniser import load_recogniser
    from jostle.training.loop import train

    torch.backends.cudnn.benchmark = True  # clips have one shape
    begun = time.monotonic()
    folder = work / "runs" / run.folder
    done = train(settings_for(run, work), folder)
    trained = time.monotonic()
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    network = load_recogniser(run.recogniser, weights=read_weights(done.weights)).network
    network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    clips = load_cells(work / "cells")
    cells = {cell: shares(predicted(network, clips, number), clips.label) for number, cell in enumerate(CELLS)}
    return {
        "run": asdict(run),
        "cells": cells,
        "clips": len(clips.label),
        "seconds": [round(trained - begun, 1), round(time.monotonic() - trained, 1)],
    }


def predicted(network: Any, clips: TestClips, cell: int, *, at_once: int = 120) -> np.ndarray:
    """(N,) the class that a network tells for each clip of a cell."""
    import torch

    from jostle.models.recognition.puppets import SPEC
    from jostle.training.clip_augmentation import prepare_batch

    device = next(network.parameters()).device
    told = []
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16):
        for lo in range(0, len(clips.label), at_once):
            shown = torch.from_numpy(np.array(clips.frames[cell, lo : lo + at_once])).to(device)
            told.append(network(prepare_batch(shown, SPEC)).argmax(1))
    return torch.cat(told).cpu().numpy()


_ORDERED = np.array([name in TWIN for name in CLASSES])
_TWIN = np.array([CLASSES.index(TWIN.get(name, name)) for name in CLASSES])


def shares(told: np.ndarray, label: np.ndarray) -> list[float]:
    """Shares told right: of all clips, of classes that only the order tells apart, of the others; and of the second,
    the share that is taken for the class that it is when time runs backwards."""
    right, ordered = told == label, _ORDERED[label]
    swapped = (told == _TWIN[label])[ordered]
    return [round(float(part.mean()), 5) for part in (right, right[ordered], right[~ordered], swapped)]


def ship(work: Path) -> None:
    """Copy the weights of the first seed into the package."""
    ship_weights(
        {
            f"{recogniser}-{name}": work / "runs" / Run(recogniser, treatment, 0).folder
            for recogniser in SHIPPED_RECOGNISERS
            for name, treatment in SHIPPED.items()
        }
    )


def ship_weights(folders: Mapping[str, Path], **notes: str) -> None:
    """Copy the last weights of runs into the package, in half precision, under these names and with these notes."""
    import torch

    from jostle.models.checkpoints import read_metadata, read_weights, write_weights
    from jostle.models.weights.shipped import FOLDER

    size = 0
    for name, folder in folders.items():
        path = folder / "last.safetensors"
        half = {key: value.half() if value.is_floating_point() else value for key, value in read_weights(path).items()}
        assert all(torch.isfinite(value).all() for value in half.values()), f"{path}: too large for half precision"
        out = FOLDER / f"{name}.safetensors"
        write_weights(half, out, metadata=read_metadata(path) | notes)
        size += out.stat().st_size
    print(json.dumps({"files": len(folders), "bytes": size}))


if __name__ == "__main__":
    main()
