"""Detections under many corruptions: each video is decoded once, and features are computed where something changed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.benchmarks.recipe import CLEAN, CLEAN_CELL, Cell
from jostle.errors import DataError, JostleError, ResourceError
from jostle.evaluation.detection import FeatureDetector, Grid, find_segments
from jostle.extraction.engine import Cost, VideoFeatures
from jostle.extraction.extractor import FeatureExtractor
from jostle.media.decode import Reader
from jostle.types.predictions import Predictions
from jostle.types.segments import Segments
from jostle.types.truth import Truth
from jostle.workers import worked


@dataclass(frozen=True)
class Models:
    """What looks at the videos.

    Attributes:
        extractor: makes features.
        detectors: by name; each looks at the same features.
        guard: a context to work in, such as one that keeps a library to one thread.
    """

    extractor: FeatureExtractor
    detectors: Mapping[str, FeatureDetector]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True)
class Sweep:
    """What was found.

    Attributes:
        found: by detector, then by cell, the clean one first.
        set_aside: videos that could not be used, and why.
        clean: what the clean videos cost.
        cells: what all other cells cost on top.
    """

    found: dict[str, dict[str, Predictions]]
    set_aside: dict[str, str]
    clean: Cost
    cells: Cost


@dataclass(frozen=True)
class Order:
    """One video for one worker, and the cells it is to be looked at in."""

    name: str
    path: Path
    segments: Segments
    cells: tuple[Cell, ...]
    seed: int

    def __str__(self) -> str:
        return str(self.path)


Found = dict[str, dict[str, Segments]]  # by detector, then by cell
Result = tuple[Found, Cost, Cost] | JostleError  # and what clean and all other cells cost, or what is wrong


def sweep_videos(
    videos: Mapping[str, Path],
    truth: Truth,
    cells: Sequence[Cell],
    load: Callable[[], Models],
    *,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Look at videos clean and in every cell.

    Args:
        videos: files by id.
        truth: the actions that placements strike.
        cells: of a benchmark; the clean one is looked at first, whether it is among them or not.
        load: gives the models, in every process once.
        jobs: videos at once.
        progress: told of videos.

    Raises:
        DataError: if none of the videos could be used.
    """
    cells = (CLEAN_CELL, *(cell for cell in cells if cell.name != CLEAN))
    actions = actions_of(truth)
    orders = [Order(name, path, actions[name], tuple(cells), seed) for name, path in videos.items() if name in actions]
    found: dict[str, Found] = {}
    set_aside, clean, others = {}, Cost(), Cost()
    with closing(looked_at(orders, load, jobs)) as results:
        for done, (order, result) in enumerate(results, 1):
            if isinstance(result, JostleError):
                set_aside[order.name] = str(result)
            else:
                found[order.name], one, more = result
                clean, others = clean + one, others + more
            if progress is not None:
                progress(done, len(orders))
    if not found:
        raise DataError(
            f"none of {len(orders)} videos could be used: {next(iter(set_aside.values()), 'none is known')}"
        )
    names = [name for name in truth.videos if name in found]  # whichever was done first
    models = list(found[names[0]])
    return Sweep(
        {
            model: {
                cell.name: Predictions.from_segments({name: found[name][model][cell.name] for name in names})
                for cell in cells
            }
            for model in models
        },
        set_aside,
        clean,
        others,
    )


def looked_at(
    orders: Sequence[Order], load: Callable[[], Models], jobs: int
) -> Generator[tuple[Order, Result], None, None]:
    """Results of videos as they are done; close it to end the work early."""
    return worked(_Looking(load), orders, jobs)


@dataclass(frozen=True)
class _Looking:
    """Starts a worker: loads the models there."""

    load: Callable[[], Models]

    def __call__(self) -> Callable[[Order], Result]:
        models = self.load()
        return lambda order: _attempt(order, models)


def _attempt(order: Order, models: Models) -> Result:
    try:
        with models.guard():
            return _look(order, models)
    except ResourceError:
        raise
    except JostleError as error:  # one bad video is set aside
        return error


def _look(order: Order, models: Models) -> tuple[Found, Cost, Cost]:
    grid = Grid(models.extractor.spec.stride, models.extractor.spec.frames)
    found: Found = {model: {} for model in models.detectors}
    with Reader(order.path, threads=1) as reader:
        video = VideoFeatures(
            reader,
            models.extractor,
            seed=order.seed,
            video_id=order.name,
            segments=order.segments,
            path=None if reader.damage else order.path,
            bit_rate=reader.facts.bit_rate,
        )
        clean, others = video.clean(), Cost()
        for cell in order.cells:
            done = clean
            if cell.name != CLEAN:
                done = video.under(cell.parsed, cell.placement)
                others += done.cost
            for model, detector in models.detectors.items():
                found[model][cell.name] = find_segments(
                    detector, np.array(done.features), grid, name=order.name, fps=video.fps, duration=reader.end_s
                )
    return found, clean.cost, others


def actions_of(truth: Truth) -> dict[str, Segments]:
    """The actions of every video, for placements to strike."""
    return {name: _segments(truth, np.flatnonzero(truth.video == v)) for v, name in enumerate(truth.videos)}


def _segments(truth: Truth, rows: np.ndarray) -> Segments:
    kept = rows[truth.end[rows] > truth.start[rows]]  # no frame to strike in one without length
    return Segments(truth.start[kept], truth.end[kept], truth.label[kept].astype(np.int64), classes=truth.classes)
