"""Films of stripes that spell their number, and a recogniser that reads it: what it gets right is chosen by number.

Everything goes through the public face, so that whole benchmarks run in seconds without a network.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import jostle

BITS, WIDTH, FRAMES = 10, 8, 6
CELLS = ("thumos14-c/black_frame:3", "gaussian_noise:3", "brightness:3", "contrast:2")
RECIPE = """
name = "stripes-c"
version = 1
dataset = "folder"
subset = ""
task = "recognition"
metric = "top_k_accuracy"
k = 1

[[groups]]
name = "main"
cells = [{cells}]
"""


def write_benchmark(root: Path, videos: int, cells: Collection[str] = CELLS) -> Path:
    """Write films with a folder for each of two classes, and return the benchmark's TOML file beside them."""
    for number in range(videos):
        bits = [0, *(number >> bit & 1 for bit in range(BITS)), 1]
        frame = np.repeat(np.repeat(np.array(bits, np.uint8) * 255, WIDTH)[None, :, None], 3, axis=2)
        folder = root / "films" / "ab"[number % 2] / f"film_{number:04d}"
        folder.mkdir(parents=True)
        for t in range(FRAMES):
            cv2.imwrite(str(folder / f"{t:05d}.png"), np.repeat(frame, 16, axis=0))
    recipe = root / "stripes-c.toml"
    recipe.write_text(RECIPE.format(cells=", ".join(f'"{cell}"' for cell in cells)))
    return recipe


@dataclass(frozen=True)
class StripeReader:
    """Recogniser of the class of striped films; wrong on some, and on others once they are corrupted."""

    wrong: Collection[int] = ()
    frail: Collection[int] = ()

    def __call__(self, clips: Any) -> Any:
        """Return (B, 2) scores for (B, T, H, W, 3) frames."""
        return np.stack([self._scores(np.asarray(clip)) for clip in clips])

    def _scores(self, clip: Any) -> Any:
        whole = clip[clip.reshape(len(clip), -1).max(axis=1) > 0]  # black frames say nothing
        levels = whole.mean(axis=(0, 1, 3)).reshape(-1, WIDTH).mean(axis=1)
        bits = levels[1:-1] > (levels[0] + levels[-1]) / 2
        number = int(sum(1 << i for i, bit in enumerate(bits.tolist()) if bit))
        corrupted = len(whole) < len(clip) or not np.isin(clip, (0, 255)).all()
        error = number in self.wrong or (corrupted and number in self.frail)
        return np.eye(2)[(number + error) % 2]


def run_stripes(benchmark: Path, out: Path, model: Any = None, **options: Any) -> Any:
    """Run the benchmark of `write_benchmark` on a reader."""
    reader = StripeReader() if model is None else model
    options = {"fps": 25, "jobs": 1} | options
    return jostle.run(benchmark, model=reader, data=benchmark.parent / "films", out=out, **options)
