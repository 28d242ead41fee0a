"""Recognisers x treatments x seeds on trimmed puppets: from a seed to the shipped weights and the numbers of the docs.

    python -m studies.recognition WORK start cells study singles weights

Steps and runs that are done already are skipped, so a study that was stopped goes on. `start` needs a GPU and `cells`
the cores: named together they work side by side.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.config import make_settings
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
from studies.harness import (
    CORES,
    GridRun,
    Record,
    finish,
    parse_arguments,
    run_grid,
    ship_weights,
    use_one_thread,
)

RECOGNISERS = ("puppet_c3d", "puppet_r2plus1d", "puppet_x3d", "puppet_divided", "puppet_slowfast", "puppet_tam")
SHIPPED_RECOGNISERS = RECOGNISERS[:4]  # the two of the papers' own layout are twice as large, and are not kept
WIDE = "puppet_tam_wide"  # four times the weights of its narrow kin, under the treatments that tell what these buy
WIDE_TREATMENTS = ("clean", "mix")
SEEDS = (0, 1, 2)
SINGLE = "puppet_r2plus1d"  # learns from one corruption at a time, too
STEPS = ("start", "cells", "study", "singles", "weights")

SEVERITIES = (1, 2, 3, 4, 5)
FAMILY: dict[str, tuple[str, ...]] = {
    "C spatial": tuple(f"kinetics-c/{name}" for name in SPATIAL),
    "C temporal": tuple(f"kinetics-c/{name}" for name in TEMPORAL),
    **{f"P {family}": tuple(f"ucf101-p/{name}" for name in names) for family, names in FAMILIES.items()},
}
CELLS = ("clean", *(f"{name}:{level}" for names in FAMILY.values() for name in names for level in SEVERITIES))
TWIN = {**REVERSED, **{second: first for first, second in REVERSED.items()}}  # told apart by the order alone

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
class Run(GridRun):
    """One training run."""

    recogniser: str
    treatment: str
    seed: int


def main() -> None:
    arguments = parse_arguments(__doc__, STEPS, jobs=CORES, at_once=6, clips=15, seeds=list(SEEDS), results=Path)
    results = arguments.results or arguments.work / "recognition.jsonl"
    begin = time.monotonic()
    starting = _start_all(arguments.work, arguments.jobs) if "start" in arguments.steps else None
    if "cells" in arguments.steps:
        make_cells(
            arguments.work / "cells", first_videos(arguments.clips), frames=SPEC.frames, size=SIZE, jobs=arguments.jobs
        )
        print(f"cells: {time.monotonic() - begin:.0f} s", flush=True)
    wanted = {"study": study_runs, "singles": single_runs}
    runs = [run for step, those in wanted.items() if step in arguments.steps for run in those(arguments.seeds)]
    for treatment in dict.fromkeys(run.treatment for run in runs):
        prepare(treatment, arguments.work, arguments.jobs)
    print(f"clips to learn from: {time.monotonic() - begin:.0f} s", flush=True)
    if starting is not None:
        starting()
        print(f"networks to begin with: {time.monotonic() - begin:.0f} s", flush=True)
    finish(
        run_grid(runs, partial(measure, work=arguments.work), results, at_once=arguments.at_once, summarise=summarise)
    )
    if "weights" in arguments.steps:
        weights = {
            f"{recogniser}-{name}": arguments.work / "runs" / Run(recogniser, treatment, 0).folder / "last.safetensors"
            for recogniser in SHIPPED_RECOGNISERS
            for name, treatment in SHIPPED.items()
        }
        ship_weights(weights)
    print(f"all: {time.monotonic() - begin:.0f} s", flush=True)


def study_runs(seeds: Iterable[int] = SEEDS) -> list[Run]:
    """Every recogniser under every treatment, and the wide one."""
    pairs = [(WIDE, t) for t in WIDE_TREATMENTS]
    pairs += [(r, t) for r in reversed(RECOGNISERS) for t in TREATMENTS]
    return [Run(recogniser, treatment, seed) for recogniser, treatment in pairs for seed in seeds]


def single_runs(seeds: Iterable[int] = SEEDS) -> list[Run]:
    """One recogniser that learns from one corruption at a time."""
    return [Run(SINGLE, treatment, seed) for treatment in SINGLES for seed in seeds]


def _start_all(work: Path, jobs: int) -> Callable[[], None]:
    """Pretrain the networks that have no weights yet, each in a process; return a function that waits for them."""
    missing = [name for name in (*RECOGNISERS, WIDE) if not _start_of(work, name).exists()]
    if not missing:
        return lambda: None
    from studies.drawn_films import draw_clips

    clips = draw_clips(jobs=jobs)
    for part in ("frames", "joints", "label"):
        np.save(work / f"drawn-{part}.npy", getattr(clips, part))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_start_one, args=(name, work)) for name in missing]
    for process in processes:
        process.start()

    def wait() -> None:
        for name, process in zip(missing, processes, strict=True):
            process.join()
            assert process.exitcode == 0, f"{name} did not begin"
        for part in ("frames", "joints", "label"):
            (work / f"drawn-{part}.npy").unlink()

    return wait


def _start_one(name: str, work: Path) -> None:
    from studies.backbones import pretrain_recogniser
    from studies.drawn_films import DrawnClips

    use_one_thread()
    parts = {part: np.load(work / f"drawn-{part}.npy", mmap_mode="c") for part in ("frames", "joints", "label")}
    pretrain_recogniser(name, DrawnClips(**parts), _start_of(work, name))


def _start_of(work: Path, name: str) -> Path:
    return work / f"start-{name}.safetensors"


def settings_for(run: Run, work: Path, *, jobs: int = 1) -> RecognitionConfig:
    """Return the settings of one training run."""
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
    """Read and corrupt the clips of a treatment before the runs need them."""
    from jostle.training.recognition import load_split

    load_split(settings_for(Run(RECOGNISERS[0], treatment, 0), work, jobs=jobs))


def summarise(record: dict[str, Any]) -> str:
    """Return the clean and the corrupted score of a run, to be printed."""
    cells = record["cells"]
    corrupted = np.mean([cells[name][0] for name in CELLS[1:]])
    return f"clean {100 * cells['clean'][0]:.1f} corrupted {100 * corrupted:.1f}"


def measure(run: Run, work: Path) -> Record:
    """Train a recogniser, and score it on the test clips in every cell."""
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.recognition.recogniser import load_recogniser
    from jostle.training.loop import train

    torch.backends.cudnn.benchmark = True  # clips have one shape
    begin = time.monotonic()
    folder = work / "runs" / run.folder
    done = train(settings_for(run, work), folder)
    trained = time.monotonic()
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    network = load_recogniser(run.recogniser, weights=read_weights(done.weights)).network
    network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    clips = load_cells(work / "cells")
    cells = {
        cell: accuracies(predict_classes(network, clips, number), clips.label) for number, cell in enumerate(CELLS)
    }
    return {
        "run": asdict(run),
        "cells": cells,
        "clips": len(clips.label),
        "seconds": [round(trained - begin, 1), round(time.monotonic() - trained, 1)],
    }


def predict_classes(network: Any, clips: TestClips, cell: int, *, at_once: int = 120) -> np.ndarray:
    """Return (N,) the predicted class of each clip of a cell."""
    import torch

    from jostle.models.recognition.puppets import SPEC
    from jostle.training.clip_augmentation import prepare_batch

    device = next(network.parameters()).device
    classes = []
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16):
        for lo in range(0, len(clips.label), at_once):
            batch = torch.from_numpy(np.array(clips.frames[cell, lo : lo + at_once])).to(device)
            classes.append(network(prepare_batch(batch, SPEC)).argmax(1))
    return torch.cat(classes).cpu().numpy()


_ORDERED = np.array([name in TWIN for name in CLASSES])
_TWIN = np.array([CLASSES.index(TWIN.get(name, name)) for name in CLASSES])


def accuracies(predictions: np.ndarray, label: np.ndarray) -> list[float]:
    """Return the accuracy on all clips, on classes that differ only in temporal order, and on the others; and the share
    of the second that is taken for the class it shows when played backwards."""
    right, ordered = predictions == label, _ORDERED[label]
    swapped = (predictions == _TWIN[label])[ordered]
    return [round(float(part.mean()), 5) for part in (right, right[ordered], right[~ordered], swapped)]


@dataclass(frozen=True, eq=False)
class TestClips:
    """Test clips, cell by cell.

    Attributes:
        frames: (cells, N, T, H, W, 3) uint8, mapped from the file.
        label: (N,).
    """

    frames: npt.NDArray[np.uint8]
    label: npt.NDArray[np.int64]


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
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_limit_threads) as pool:
        list(pool.map(_fill, [path] * len(videos), range(len(videos)), videos, chunksize=1))
    part = index.with_suffix(".part")
    part.write_text(json.dumps({"cells": CELLS, "label": [video.label for video in videos]}))
    os.replace(part, index)


def load_cells(folder: Path) -> TestClips:
    """Read the clips that `make_cells` wrote."""
    index = json.loads((folder / "cells.json").read_text())
    assert tuple(index["cells"]) == CELLS, f"{folder} holds other cells; remove it"
    return TestClips(np.load(folder / "cells.npy", mmap_mode="r"), np.array(index["label"], np.int64))


def _limit_threads() -> None:
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)


def _fill(path: Path, row: int, video: VideoClip) -> None:
    with Reader(video.path) as reader:
        clip = Clip(reader.block(0, len(reader)), reader.pts, reader.fps)
    pixels = np.load(path, mmap_mode="r+")
    places = evenly_spaced(len(clip), pixels.shape[2])
    for number, cell in enumerate(CELLS):
        specs = [] if cell == "clean" else [Spec.parse(cell)]
        pixels[number, row] = corrupt_frames(clip, specs, places, seed=0, video=video)


if __name__ == "__main__":
    from studies import recognition  # the name by which worker processes find the runs

    recognition.main()
