"""What corruptions in training a recogniser cost on a GPU: `python -m bench.gpu_training`.

Drawn videos in folders of two classes; `jostle train` learns from them as they are, and with corruptions in three
quarters of what is shown. Corrupted versions are made before the first step, which is measured by itself; an epoch is
the median of those after the first.
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
from jostle.core.config import make_settings
from jostle.io.video.encode import Writer
from jostle.training.recognition_config import RecognitionConfig

LENGTH, HEIGHT, WIDTH = 48, 128, 170
BATCH, EPOCHS = 16, 6
SPECS = ("gaussian_noise", "motion_blur", "fog", "contrast", "jpeg_compression")
AIM = 1.2


@dataclass(frozen=True)
class Times:
    """Seconds before the first step, and of an epoch."""

    before: float
    epoch: float


def written(place: tuple[Path, int]) -> None:
    """One video."""
    path, seed = place
    path.parent.mkdir(parents=True, exist_ok=True)
    with Writer(path, size=(HEIGHT, WIDTH), fps=24) as writer:
        for frame in drawn_frames(LENGTH, HEIGHT, WIDTH, seed):
            writer.write(frame)


def trained(work: Path, recogniser: str, device: str, epochs: int, corruptions: dict[str, Any]) -> Times:
    """Train once; the cache is empty."""
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
    ends: list[float] = []
    begun = time.perf_counter()
    steps: list[int] = []

    def tick(done: int, total: int) -> None:
        steps.append(total)
        ends.append(time.perf_counter())

    jostle.train(make_settings(RecognitionConfig, content), work / name, progress=tick)
    each = steps[0] // (epochs + 1)
    closed = ends[each - 1 :: each]
    return Times(ends[0] - begun, statistics.median(b - a for a, b in itertools.pairwise(closed)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit status whether the aim is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=192)
    parser.add_argument("--recogniser", default="puppet_r2plus1d")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="behind the first, which warms up")
    given = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        work = Path(folder)
        places = [(work / "set" / "train" / "ab"[i % 2] / f"v{i}.mp4", i) for i in range(given.videos)]
        with ProcessPoolExecutor() as pool:
            list(pool.map(written, places))
        ways = (given.recogniser, given.device, given.epochs)
        clean = trained(work, *ways, {})
        rough = trained(work, *ways, {"specs": list(SPECS), "share": 0.75, "draws": 4})
    ratio = rough.epoch / clean.epoch
    print(f"{given.recogniser}, {given.videos} videos of {LENGTH} frames, {WIDTH} x {HEIGHT}, on {given.device}")
    for name, times in (("clean", clean), ("corrupted", rough)):
        print(f"{name:10} {times.before:7.2f} s before the first step's end, {times.epoch:7.3f} s an epoch")
    print(f"an epoch takes {ratio:.2f} times the clean one (aim {AIM})")
    return finish(given, {"clean": asdict(clean), "corrupted": asdict(rough)}, missed=ratio > AIM)


if __name__ == "__main__":
    sys.exit(main())
