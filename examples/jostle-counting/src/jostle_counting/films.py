"""Films of a grey wall that a lamp lights now and then; the flashes are counted."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from jostle.extend import Dataset, Request, Writer, dataset
from jostle_counting.task import Counts

FILMS, FRAMES, SIZE, RATE = 24, 40, (48, 64), Fraction(10)
DARK, LIGHT = 60, 200


@dataset("flashes", subsets=("test",), task="counting")
def flashes(request: Request) -> Dataset:
    """Films of zero to four flashes, drawn on first use."""
    folder = request.root / f"flashes-{request.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    events, videos = {}, {}
    for number in range(FILMS):
        name = f"film_{number:02d}"
        events[name], videos[name] = number % 5, folder / f"{name}.mp4"
        if not videos[name].exists():
            _write(videos[name], events[name], np.random.default_rng([request.seed, number]))
    return Dataset("flashes", request.subset, folder, (Counts(events),), videos)


def _write(path: Path, events: int, rng: np.random.Generator) -> None:
    starts = 4 + 8 * rng.choice((FRAMES - 8) // 8, events, replace=False)
    part = path.with_suffix(".part.mp4")
    with Writer(part, size=SIZE, fps=RATE) as writer:
        for t in range(FRAMES):
            lit = any(start <= t < start + 3 for start in starts)
            frame = rng.integers(-8, 9, (*SIZE, 3)) + (LIGHT if lit else DARK)
            writer.write(frame.astype(np.uint8))
    part.replace(path)


def count_flashes(frames: np.ndarray) -> int:
    """Count how often the picture gets light; a model for these films."""
    light = frames.mean(axis=(1, 2, 3)) > (DARK + LIGHT) / 2
    return int(np.count_nonzero(light[1:] & ~light[:-1]) + light[0])
