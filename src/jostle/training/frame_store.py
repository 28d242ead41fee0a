"""Store of training videos as pixels, read once at the rate and size of a detector.

Files are memory-mapped, so that several runs share them, and what does not fit into memory is read when it is needed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from jostle.core.environment import cache_folder
from jostle.core.random import rng_for
from jostle.core.types.clip import Frames
from jostle.core.types.truth import Truth
from jostle.corruptions.engine.stages import gather
from jostle.datasets.dataset import Dataset, Request, datasets
from jostle.errors import DataError, JostleError
from jostle.features.windows import mean_rate
from jostle.io.files.atomic import replacing, write_text
from jostle.io.files.text import read_json
from jostle.io.video.decode import Reader
from jostle.io.video.source import source_state
from jostle.models.detection.detector import make_detector
from jostle.models.detection.frame_detector import FrameDetector
from jostle.parallel.workers import available_cpus, map_unordered
from jostle.training.detection_config import FramesConfig

FORMAT = 1  # of the files of pixels: raise it when the same settings give other bytes
AT_ONCE = 64  # frames resized together
TRIES = 200  # clips drawn before one without an action is refused


@dataclass(frozen=True, eq=False)
class TrainingFilm:
    """Frames and actions of one training video.

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
class FilmClip:
    """A clip of a film.

    Attributes:
        frames: at most the frames of a clip.
        segments: (M, 2) actions in frames of the clip, cut at its ends.
    """

    frames: Frames
    segments: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]


def cut_clip(film: TrainingFilm, length: int, *, visible: float, key: tuple[Any, ...]) -> FilmClip:
    """Draw a clip of a film with at least one action, by the key.

    An action counts if enough of it, or of the clip, is visible.
    """
    rng = rng_for(*key)
    last = max(len(film.frames) - length, 0)
    whole = np.maximum(film.segments[:, 1] - film.segments[:, 0], 1e-8)
    for _ in range(TRIES):
        first = int(rng.integers(last + 1))
        inside = np.clip(film.segments - first, 0, min(length, len(film.frames)))
        visible_length = inside[:, 1] - inside[:, 0]
        keep = np.maximum(visible_length / whole, visible_length / length) >= visible
        if keep.any():
            return FilmClip(film.frames[first : first + length], inside[keep], film.labels[keep])
    raise DataError(
        f"video {film.name}: none of {TRIES} clips of {length} frames shows an action; leave the video out, or lower "
        "data.visible",
        fault="F95",
    )


@dataclass(frozen=True)
class _ReadJob:
    """A video to be read by another process."""

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
) -> tuple[list[TrainingFilm], Truth]:
    """Load the available videos of a subset, and their truth.

    Args:
        name, settings: of the detector, for the worker processes.
    """
    films: list[TrainingFilm] = []
    truths: list[Truth] = []
    for seed in seeds:
        data = _load_dataset(config, subset, seed)
        prefix = f"{seed}/" if len(seeds) > 1 else ""
        paths = _pixel_files(config, data, detector, name, settings, progress)
        films += _films(data, prefix, paths)
        truths.append(data.truth)
    if not films:
        raise DataError(f"{config.dataset}: no videos of subset {subset!r}", fault="F21")
    return films, truths[0]


def _load_dataset(config: FramesConfig, subset: str, seed: int) -> Dataset:
    kind = datasets[config.dataset]
    kind.check_subset(subset)
    root = cache_folder() if config.root is None else Path(config.root)
    return kind.load(Request(subset, root, seed, config.jobs or available_cpus())).at_hand()


def _pixel_files(
    config: FramesConfig,
    data: Dataset,
    detector: FrameDetector[Any],
    name: str,
    settings: Mapping[str, Any],
    progress: Callable[[int, int], None] | None,
) -> dict[str, Path]:
    """Return the pixel files by video, after writing the missing ones."""
    folder = cache_folder() / "films" if config.cache is None else Path(config.cache)
    folder.mkdir(parents=True, exist_ok=True)
    settings_key = json.dumps([FORMAT, type(detector).__name__, detector.config.fps, detector.config.frame_size])
    if detector.config.fps is None:
        settings_key += str(detector.config.max_length)
    paths, jobs = {}, []
    for video in data.truth.videos:
        path, fps = Path(data.videos[video]), data.rate_of(video)
        key = hashlib.sha256(
            f"{settings_key} {json.dumps([str(video), *source_state(path, fps)])}".encode()
        ).hexdigest()[:24]
        paths[video] = folder / f"film-{key}.npy"
        if not paths[video].exists():
            jobs.append(_ReadJob(video, path, fps, paths[video]))
    work = partial(_start_reader, name, dict(settings))
    for done, _ in enumerate(map_unordered(work, jobs, config.jobs or available_cpus()), 1):
        if progress is not None:
            progress(done, len(jobs))
    return paths


def _start_reader(name: str, settings: dict[str, Any]) -> Callable[[_ReadJob], None]:
    import cv2

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    detector: Any = make_detector(name, **settings)
    return partial(_write_pixels, detector)


def _write_pixels(detector: FrameDetector[Any], job: _ReadJob) -> None:
    """Write the pixels of a video."""
    try:
        with Reader(job.path, threads=1, fps=job.fps) as reader:
            indices, rate = detector.sample_indices(len(reader), mean_rate(reader.pts, reader.fps))
            info = {"rate": float(rate), "duration": float(reader.end_s)}
            parts = []
            for lo in range(0, len(indices), AT_ONCE):
                block = torch.from_numpy(gather(reader, indices[lo : lo + AT_ONCE]))
                small = detector.shrunk(block.permute(0, 3, 1, 2).float())
                parts.append(small.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    except JostleError as error:
        error.add_note(f"while reading {job.name} to learn from it")
        raise
    write_text(job.out.with_suffix(".json"), [json.dumps(info), "\n"])
    with replacing(job.out) as part, part.open("wb") as file:
        np.save(file, np.concatenate(parts))


def _films(data: Dataset, prefix: str, paths: Mapping[str, Path]) -> list[TrainingFilm]:
    truth, films = data.truth, []
    for row, video in enumerate(truth.videos):
        frames, info = np.load(paths[video], mmap_mode="r"), read_json(paths[video].with_suffix(".json"))
        mine, rate = truth.video == row, float(info["rate"])
        times = np.stack([truth.start[mine], truth.end[mine]], axis=1)
        segments, labels = (times * rate).astype(np.float32), truth.label[mine].astype(np.int64)
        films.append(TrainingFilm(prefix + video, frames, segments, labels, rate, float(info["duration"])))
    return films


def renumber_classes(films: Sequence[TrainingFilm], numbers: npt.NDArray[np.int64]) -> list[TrainingFilm]:
    """Replace the truth's class numbers by the detector's."""
    return [replace(film, labels=numbers[film.labels]) for film in films]
