"""Cost of corruptions in the training of a recogniser on a GPU: `python -m bench.gpu_training`.

Generated videos in folders of two classes; `jostle train` learns from clean clips, and with corruptions of three
quarters of them. Corrupted versions are computed before the first step, which is timed separately; the time of an epoch
is the median of those after the first.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jostle
from bench.clips import drawn_frames
from bench.timing import finish, make_parser
from jostle.core.settings import make_settings
from jostle.io.video.encode import Writer
from jostle.training.recognition_config import RecognitionConfig

LENGTH, HEIGHT, WIDTH = 48, 128, 170
BATCH, EPOCHS = 16, 6
SPECS = ("gaussian_noise", "motion_blur", "fog", "contrast", "jpeg_compression")
TARGET = 1.2


@dataclass(frozen=True)
class TrainingTiming:
    """Seconds until the end of the first step, and of an epoch."""

    before: float
    epoch: float


def write_video(path: Path, seed: int) -> None:
    """Write a generated video to a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Writer(path, size=(HEIGHT, WIDTH), fps=24) as writer:
        for frame in drawn_frames(LENGTH, HEIGHT, WIDTH, seed):
            writer.write(frame)


def time_training(work: Path, recogniser: str, device: str, epochs: int, corruptions: dict[str, Any]) -> TrainingTiming:
    """Train a recogniser with an empty cache, and return the times of its steps."""
    name = "corrupted" if corruptions else "clean"
    content = {
        "recogniser": recogniser,
        "precision": "bfloat16" if device == "cuda" else "float32",
        "device": device,
        "data": {
            "dataset": "folder",
            "root": str(work / "set"),
            "train": "train",
            "select": 0.0,
            "cache": str(work / f"cache-{name}"),
        },
        "corruptions": corruptions,
        "optimiser": {"lr": 1e-3, "warmup_epochs": 1, "epochs": epochs, "batch": BATCH},
    }
    step_ends: list[float] = []
    totals: list[int] = []

    def record(done: int, total: int) -> None:
        totals.append(total)
        step_ends.append(time.perf_counter())

    start = time.perf_counter()
    jostle.train(make_settings(RecognitionConfig, content), work / name, progress=record)
    steps = totals[0] // (epochs + 1)  # of an epoch
    epoch_ends = step_ends[steps - 1 :: steps]
    epoch_s = statistics.median(end - begin for begin, end in itertools.pairwise(epoch_ends))
    return TrainingTiming(step_ends[0] - start, epoch_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the times of training with and without corruptions, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=192)
    parser.add_argument("--recogniser", default="puppet_r2plus1d")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="epochs after the first, which warms up")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        work = Path(folder)
        seeds = range(options.videos)
        paths = [work / "set" / "train" / "ab"[seed % 2] / f"v{seed}.mp4" for seed in seeds]
        with ProcessPoolExecutor() as pool:
            list(pool.map(write_video, paths, seeds))
        settings = (options.recogniser, options.device, options.epochs)
        clean = time_training(work, *settings, {})
        corrupted = time_training(work, *settings, {"specs": list(SPECS), "share": 0.75, "draws": 4})
    ratio = corrupted.epoch / clean.epoch
    size = f"{options.videos} videos of {LENGTH} frames, {WIDTH} x {HEIGHT}"
    print(f"{options.recogniser}, {size}, on {options.device}")
    for name, times in (("clean", clean), ("corrupted", corrupted)):
        print(f"{name:10} {times.before:7.2f} s until the end of the first step, {times.epoch:7.3f} s an epoch")
    print(f"an epoch takes {ratio:.2f} times the clean one (target {TARGET})")
    return finish(options, {"clean": asdict(clean), "corrupted": asdict(corrupted)}, missed=ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main())
