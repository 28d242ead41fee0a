"""The test films as a detector of frames sees them, clean and in each cell of `puppets-c`: made once for all runs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.types.clip import Frames
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, PipelineSource, chain, gather, origins
from jostle.features.windows import mean_rate
from jostle.io.files.atomic import write_bytes
from jostle.parallel.workers import map_unordered
from studies.cells import CELLS, PUPPETS_C

AT_ONCE = 64  # frames that are shrunk together


@dataclass(frozen=True, eq=False)
class StruckFilm:
    """A film in the detector's size and at its rate.

    Attributes:
        clean: (T, h, w, 3) uint8.
        struck: by cell, the numbers of the frames that are other ones, and those.
    """

    name: str
    clean: Frames
    struck: dict[str, tuple[npt.NDArray[np.int64], Frames]]
    rate: float
    duration: float


@dataclass(frozen=True)
class _Order:
    name: str
    path: Path
    actions: npt.NDArray[np.float64]
    duration: float
    out: Path


def make_struck_films(detector: str, folder: Path, *, jobs: int) -> None:
    """Write what a detector sees of each test film, where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    data = jostle.load_dataset("puppets", subset="test", jobs=jobs)
    truth, orders = data.truth, []
    for row, name in enumerate(truth.videos):
        mine, out = truth.video == row, folder / f"{name}.npz"
        if out.exists():
            continue
        actions = np.stack([truth.start[mine], truth.end[mine]], axis=1)
        orders.append(_Order(name, Path(data.videos[name]), actions, float(truth.duration[row]), out))
    list(map_unordered(partial(_maker, detector), orders, jobs))


def read_struck_films(folder: Path) -> Iterator[StruckFilm]:
    """The films of a folder."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            struck = {cell: (file[f"at {n}"], file[f"frames {n}"]) for n, cell in enumerate(PUPPETS_C)}
            yield StruckFilm(path.stem, file["clean"], struck, float(file["rate"]), float(file["duration"]))


def _maker(name: str) -> Any:
    import cv2
    import torch

    from jostle.models.detection.detector import load_detector

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    return partial(_made, load_detector(name))


def _made(detector: Any, order: _Order) -> None:
    clip = jostle.read(order.path)
    source = ClipSource(clip)
    taken, rate = detector.sample_indices(len(clip), mean_rate(clip.pts, clip.fps))
    timeline = Timeline.of(clip.pts, clip.fps, Segments.from_pairs(order.actions), video_id=order.name)
    parts: dict[str, Any] = {"clean": _shrunk(detector, source, taken), "rate": rate, "duration": order.duration}
    for n, cell in enumerate(PUPPETS_C):
        text, placement = CELLS[cell]
        specs = [Spec.parse(text)]
        top = chain(source, specs, masks_for(specs, placement, timeline), seed=0, video_id=order.name)
        at = np.flatnonzero(origins(top)[taken] != taken)
        parts |= {f"at {n}": at, f"frames {n}": _shrunk(detector, top, taken[at])}
    write_bytes(order.out, [_packed(parts)])


def _shrunk(detector: Any, source: PipelineSource, numbers: npt.NDArray[np.int64]) -> Frames:
    import torch

    made = [np.empty((0, *[detector.config.frame_size] * 2, 3), np.uint8)]
    for lo in range(0, len(numbers), AT_ONCE):
        block = torch.from_numpy(gather(source, numbers[lo : lo + AT_ONCE])).permute(0, 3, 1, 2)
        made.append(detector.shrunk(block.float()).round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    return np.concatenate(made)


def _packed(parts: dict[str, Any]) -> bytes:
    held = io.BytesIO()
    np.savez(held, **parts)
    return held.getvalue()
