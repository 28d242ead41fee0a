"""Videos to learn from as pictures: read once, at the rate and size of a detector, and kept as files of pixels.

Files are looked at through the page cache, so that several runs share them, and what does not fit into memory is read
when it is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from jostle.core.cache import cache_folder
from jostle.core.random import rng_for
from jostle.core.types.clip import Frames
from jostle.core.types.truth import Truth
from jostle.corruptions.engine.stages import gather
from jostle.datasets.dataset import Dataset, Request, datasets
from jostle.errors import DataError, JostleError
from jostle.features.windows import mean_rate
from jostle.io.files.atomic import write_text
from jostle.io.files.fingerprint import source_state
from jostle.io.files.text import read_json
from jostle.io.video.decode import Reader
from jostle.models.detection.detector import load_detector
from jostle.models.detection.frame_detector import FrameDetector
from jostle.parallel.workers import cores, worked
from jostle.training.end_to_end_config import FramesConfig

FORMAT = 1  # of the files of pixels: raise it when the same settings give other bytes
AT_ONCE = 64  # frames that are shrunk together
TRIES = 200  # clips drawn before one without an action is refused


@dataclass(frozen=True, eq=False)
class Film:
    """One video.

    Attributes:
        frames: (T, h, w, 3) uint8 at the detector's rate, of the size that it crops from.
        segments: (M, 2) actions in these frames.
        labels: (M,) class numbers.
        rate: frames a second.
        duration: seconds.
    """

    name: str
    frames: Frames
    segments: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    rate: float
    duration: float


@dataclass(frozen=True, eq=False)
class Cut:
    """A clip of a film.

    Attributes:
        frames: as many as there are, at most a clip's.
        segments: (M, 2) actions in frames of the clip, cut at its ends.
    """

    frames: Frames
    segments: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]


def cut(film: Film, length: int, *, visible: float, key: tuple[Any, ...]) -> Cut:
    """A stretch of a film with at least one action, drawn by the key.

    An action counts if a share of it, or of the clip, is seen.

    Raises:
        DataError: if no clip in 200 shows an action.
    """
    rng = rng_for(*key)
    last = max(len(film.frames) - length, 0)
    whole = np.maximum(film.segments[:, 1] - film.segments[:, 0], 1e-8)
    for _ in range(TRIES):
        first = int(rng.integers(last + 1))
        inside = np.clip(film.segments - first, 0, min(length, len(film.frames)))
        seen = inside[:, 1] - inside[:, 0]
        kept = np.maximum(seen / whole, seen / length) >= visible
        if kept.any():
            return Cut(film.frames[first : first + length], inside[kept], film.labels[kept])
    raise DataError(
        f"video {film.name}: none of {TRIES} clips of {length} frames shows an action; leave the video out, or lower "
        "data.visible",
        fault="F95",
    )


@dataclass(frozen=True)
class _Order:
    """A video that is to be read, for another process."""

    name: str
    path: Path
    fps: Fraction | None
    out: Path


def load_films(
    config: FramesConfig,
    subset: str,
    detector: FrameDetector[Any],
    *,
    seeds: Sequence[int],
    name: str,
    settings: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Film], Truth]:
    """The videos of a subset, as many as are there, and the truth about them.

    Args:
        name, settings: of the detector, for the processes that read.

    Raises:
        DataError: if there are none.
    """
    films: list[Film] = []
    truths: list[Truth] = []
    for seed in seeds:
        data = _data(config, subset, seed)
        prefix = f"{seed}/" if len(seeds) > 1 else ""
        paths = _pictures(config, data, detector, name, settings, progress)
        films += _films(data, prefix, paths)
        truths.append(data.truth)
    if not films:
        raise DataError(f"{config.dataset}: no videos of subset {subset!r}", fault="F21")
    return films, truths[0]


def _data(config: FramesConfig, subset: str, seed: int) -> Dataset:
    kind = datasets[config.dataset]
    kind.check_subset(subset)
    root = cache_folder() if config.root is None else Path(config.root)
    return kind.load(Request(subset, root, seed, config.jobs or cores())).at_hand()


def _pictures(
    config: FramesConfig,
    data: Dataset,
    detector: FrameDetector[Any],
    name: str,
    settings: Mapping[str, Any],
    progress: Callable[[int, int], None] | None,
) -> dict[str, Path]:
    """Files of pixels by video, made where they are not there."""
    folder = cache_folder() / "films" if config.cache is None else Path(config.cache)
    folder.mkdir(parents=True, exist_ok=True)
    shown = json.dumps([FORMAT, type(detector).__name__, detector.config.fps, detector.config.frame_size])
    if detector.config.fps is None:
        shown += str(detector.config.max_length)
    paths, orders = {}, []
    for video in data.truth.videos:
        path, fps = Path(data.videos[video]), data.rate_of(video)
        key = hashlib.sha256(f"{shown} {json.dumps([str(video), *source_state(path, fps)])}".encode()).hexdigest()[:24]
        paths[video] = folder / f"film-{key}.npy"
        if not paths[video].exists():
            orders.append(_Order(video, path, fps, paths[video]))
    work = partial(_reading, name, dict(settings))
    for done, _ in enumerate(worked(work, orders, config.jobs or cores()), 1):
        if progress is not None:
            progress(done, len(orders))
    return paths


def _reading(name: str, settings: dict[str, Any]) -> Callable[[_Order], None]:
    import cv2

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    detector: Any = load_detector(name, **settings)
    return partial(_read, detector)


def _read(detector: FrameDetector[Any], order: _Order) -> None:
    """Write the pixels of a video."""
    try:
        with Reader(order.path, threads=1, fps=order.fps) as reader:
            taken, rate = detector.wanted(len(reader), mean_rate(reader.pts, reader.fps))
            noted = {"rate": float(rate), "duration": float(reader.end_s)}
            parts = []
            for lo in range(0, len(taken), AT_ONCE):
                block = torch.from_numpy(gather(reader, taken[lo : lo + AT_ONCE]))
                small = detector.shrunk(block.permute(0, 3, 1, 2).float())
                parts.append(small.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    except JostleError as error:
        error.add_note(f"while reading {order.name} to learn from it")
        raise
    write_text(order.out.with_suffix(".json"), [json.dumps(noted), "\n"])
    part = order.out.with_name(f".{order.out.name}.part-{os.getpid()}")
    try:
        with part.open("wb") as file:
            np.save(file, np.concatenate(parts))
        os.replace(part, order.out)
    finally:
        part.unlink(missing_ok=True)


def _films(data: Dataset, prefix: str, paths: Mapping[str, Path]) -> list[Film]:
    truth, made = data.truth, []
    for row, video in enumerate(truth.videos):
        frames, noted = np.load(paths[video], mmap_mode="r"), read_json(paths[video].with_suffix(".json"))
        mine, rate = truth.video == row, float(noted["rate"])
        times = np.stack([truth.start[mine], truth.end[mine]], axis=1)
        segments, labels = (times * rate).astype(np.float32), truth.label[mine].astype(np.int64)
        made.append(Film(prefix + video, frames, segments, labels, rate, float(noted["duration"])))
    return made


def numbered(films: Sequence[Film], numbers: npt.NDArray[np.int64]) -> list[Film]:
    """The same with the detector's class numbers in place of the truth's."""
    return [replace(film, labels=numbers[film.labels]) for film in films]
