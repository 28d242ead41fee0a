"""Recognisers x treatments x seeds on trimmed puppets: from a seed to the shipped weights and the numbers of the docs.

    python -m studies.recognition WORK start cells study singles weights

Steps and runs that are done already are skipped, so a study that was stopped goes on. `start` needs a GPU and `cells`
the cores: named together they work side by side.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jostle.core.settings import make_settings
from jostle.core.types.clip import Clip
from jostle.corruptions.engine.spec import Spec
from jostle.datasets.puppets.actions import REVERSED
from jostle.datasets.puppets.film import CLASSES, SIZE
from jostle.evaluation.recipes.kinetics_c import SPATIAL, TEMPORAL
from jostle.evaluation.recipes.ucf101_p import FAMILIES
from jostle.io.video.decode import Reader
from jostle.models.recognition.puppets import SPEC
from jostle.training.clips import VideoClip, corrupt_frames, evenly_spaced, list_videos
from jostle.training.recognition_config import ClipsConfig, RecognitionConfig
from studies import harness

if TYPE_CHECKING:
    from studies.drawn_films import DrawnClips

SETTINGS = harness.load_settings("recognition")
RECOGNISERS, SEEDS, WIDE_TREATMENTS = (tuple(SETTINGS[name]) for name in ("recognisers", "seeds", "wide_treatments"))
WIDE, SINGLE = SETTINGS["wide"], SETTINGS["single"]
TREATMENTS: dict[str, dict[str, Any]] = SETTINGS["treatments"]
SHIPPED_RECOGNISERS = RECOGNISERS[:4]  # the two of the papers' own layout are twice as large, and are not kept

SEVERITIES = (1, 2, 3, 4, 5)
FAMILY: dict[str, tuple[str, ...]] = {
    "C spatial": tuple(f"kinetics-c/{name}" for name in SPATIAL),
    "C temporal": tuple(f"kinetics-c/{name}" for name in TEMPORAL),
    **{f"P {family}": tuple(f"ucf101-p/{name}" for name in names) for family, names in FAMILIES.items()},
}
CELLS = ("clean", *(f"{name}:{level}" for names in FAMILY.values() for name in names for level in SEVERITIES))
TWIN = {**REVERSED, **{second: first for first, second in REVERSED.items()}}  # differs by the order alone

SINGLES: dict[str, dict[str, Any]] = {
    f"only {name}": {"corruptions": {"specs": [f"kinetics-c/{name}:3"], "share": 1.0, "draws": 1}}
    for name in (*SPATIAL, *TEMPORAL)
}
SHIPPED = {"clean": "clean", "robust": "mix"}


@dataclass(frozen=True)
class RecogniserRun(harness.GridRun):
    """Training run of a recogniser."""

    recogniser: str
    treatment: str
    seed: int


def main() -> None:
    """Run the steps that are arguments."""
    steps = {
        "start": start_pretraining,
        "cells": corrupt_clips,
        "study": harness.Grid(study_runs, measure, partial(harness.summarise_cells, index=0), prepare_clips),
        "singles": harness.Grid(single_runs, measure, partial(harness.summarise_cells, index=0), prepare_clips),
        "weights": ship_networks,
    }
    harness.run_study(__doc__, "recognition", steps, jobs=harness.CORES, at_once=6, clips=15, seeds=list(SEEDS))


def study_runs() -> list[RecogniserRun]:
    """Return every recogniser under every treatment, and the wide one."""
    wide = harness.list_runs(RecogniserRun, recogniser=[WIDE], treatment=WIDE_TREATMENTS, seed=SEEDS)
    return wide + harness.list_runs(RecogniserRun, recogniser=RECOGNISERS[::-1], treatment=TREATMENTS, seed=SEEDS)


def single_runs() -> list[RecogniserRun]:
    """Return the runs of one recogniser that learns from one corruption at a time."""
    return harness.list_runs(RecogniserRun, recogniser=[SINGLE], treatment=SINGLES, seed=SEEDS)


def start_pretraining(work: Path, jobs: int) -> None:
    """Draw clips, and start to pretrain the networks that have no weights yet, each in a process."""
    missing = [name for name in (*RECOGNISERS, WIDE) if not _start_of(work, name).exists()]
    if not missing:
        return
    from studies.drawn_films import draw_clips

    clips = draw_clips(jobs=jobs)
    for name in missing:
        harness.start_process(_pretrain, name, clips, _start_of(work, name))


def _pretrain(name: str, clips: DrawnClips, out: Path) -> None:
    from studies.backbones import pretrain_recogniser

    harness.use_one_thread()
    pretrain_recogniser(name, clips, out)


def corrupt_clips(work: Path, clips: int, jobs: int) -> None:
    """Corrupt the first test clips of each class in every cell."""
    make_cells(work / "cells", first_videos(clips), frames=SPEC.frames, size=SIZE, jobs=jobs)


def ship_networks(work: Path) -> None:
    """Put the weights into the package."""
    pairs = product(SHIPPED_RECOGNISERS, SHIPPED.items())
    runs = {f"{recogniser}-{name}": RecogniserRun(recogniser, treatment, 0) for recogniser, (name, treatment) in pairs}
    harness.ship_weights({name: run.weights_in(work) for name, run in runs.items()})


def _start_of(work: Path, name: str) -> Path:
    return work / f"start-{name}.safetensors"


def settings_for(run: RecogniserRun, work: Path, *, jobs: int = 1) -> RecognitionConfig:
    """Return the settings of one training run."""
    own = {
        "recogniser": run.recogniser,
        "data": {"cache": str(work / "clips"), "jobs": jobs},
        "weights": str(_start_of(work, run.recogniser)),
        "seed": run.seed,
    }
    treatment = (TREATMENTS | SINGLES)[run.treatment]
    return make_settings(RecognitionConfig, harness.merge_settings(SETTINGS["config"], treatment, own))


def prepare_clips(runs: Iterable[RecogniserRun], work: Path, jobs: int) -> None:
    """Read and corrupt the clips of every treatment before the runs need them."""
    from jostle.training.recognition import load_split

    for treatment in dict.fromkeys(run.treatment for run in runs):
        load_split(settings_for(RecogniserRun(RECOGNISERS[0], treatment, 0), work, jobs=jobs))


def measure(run: RecogniserRun, work: Path) -> harness.Record:
    """Train a recogniser, and score it on the test clips in every cell."""
    from jostle.models.checkpoints import read_weights
    from jostle.models.loading.recognisers import load_recogniser

    weights = harness.train_run(settings_for(run, work), run.folder_in(work), one_shape=True)
    recogniser = load_recogniser(run.recogniser, weights=read_weights(weights))
    clips, labels = load_cells(work / "cells")
    predictions = predict_cells(recogniser.network.to(harness.get_device()).eval(), recogniser.spec, clips)
    cells = {cell: accuracies(own, labels) for cell, own in zip(CELLS, predictions, strict=True)}
    return {"cells": cells, "clips": len(labels)}


def predict_cells(network: Any, spec: Any, clips: npt.NDArray[np.uint8], *, at_once: int = 40) -> npt.NDArray[np.int64]:
    """Return (cells, N) the predicted class of each clip in each cell."""
    import torch

    device = next(network.parameters()).device
    # A network of more frames than are stored gets some twice.
    frames = np.arange(spec.frames) * clips.shape[2] // spec.frames
    classes = np.zeros(clips.shape[:2], np.int64)
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16):
        for cell, lo in product(range(len(classes)), range(0, classes.shape[1], at_once)):
            batch = torch.from_numpy(np.array(clips[cell, lo : lo + at_once])).to(device)[:, frames]
            pictures = spec.prepare_frames(batch.flatten(0, 1)).unflatten(0, batch.shape[:2])
            classes[cell, lo : lo + at_once] = network(pictures.transpose(1, 2)).argmax(1).cpu().numpy()
    return classes


_ORDERED = np.array([name in TWIN for name in CLASSES])
_TWIN = np.array([CLASSES.index(TWIN.get(name, name)) for name in CLASSES])


def accuracies(predictions: np.ndarray, label: np.ndarray) -> list[float]:
    """Return the accuracy on all clips, on classes that differ only in temporal order, and on the others; and the share
    of the second that is taken for the class it shows when played backwards."""
    right, ordered = predictions == label, _ORDERED[label]
    swapped = (predictions == _TWIN[label])[ordered]
    return [round(float(part.mean()), 5) for part in (right, right[ordered], right[~ordered], swapped)]


def first_videos(clips: int) -> list[VideoClip]:
    """Return the first `clips` test clips of each class of puppets."""
    _, videos = list_videos(ClipsConfig(), "test", seeds=(0,))
    return [video for label in range(len(CLASSES)) for video in [v for v in videos if v.label == label][:clips]]


def make_cells(folder: Path, videos: Sequence[VideoClip], *, frames: int, size: tuple[int, int], jobs: int) -> None:
    """Corrupt clips in every cell and keep some frames of each, unless it is done.

    Args:
        frames: number of frames to keep, evenly spaced.
        size: of a frame.
    """
    path, index = folder / "cells.npy", folder / "cells.json"
    if index.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    shape = (len(CELLS), len(videos), frames, *size, 3)
    np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape).flush()
    harness.map_in_processes(partial(_fill, path), enumerate(videos), jobs)
    part = index.with_suffix(".part")
    part.write_text(json.dumps({"cells": CELLS, "label": [video.label for video in videos]}))
    os.replace(part, index)


def load_cells(folder: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the clips that `make_cells` wrote, (cells, N, T, H, W, 3) mapped from the file, and their (N,) labels."""
    index = json.loads((folder / "cells.json").read_text())
    assert tuple(index["cells"]) == CELLS, f"{folder} holds other cells; remove it"
    return np.load(folder / "cells.npy", mmap_mode="r"), np.array(index["label"], np.int64)


def _fill(path: Path, item: tuple[int, VideoClip]) -> None:
    row, video = item
    with Reader(video.path) as reader:
        clip = Clip(reader.block(0, len(reader)), reader.pts, reader.fps)
    pixels = np.load(path, mmap_mode="r+")
    places = evenly_spaced(len(clip), pixels.shape[2])
    for number, cell in enumerate(CELLS):
        specs = [] if cell == "clean" else [Spec.parse(cell)]
        pixels[number, row] = corrupt_frames(clip, specs, places, seed=0, video=video)


if __name__ == "__main__":
    harness.run_module("studies.recognition")
