"""Drawn films and clips for training: rendered in memory that all processes share, with the positions of joints."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.random import key_for
from jostle.datasets.puppets.film import CLASSES, SIZE, Film, trimmed, untrimmed
from jostle.datasets.puppets.parameters import CASTS, VIDEOS, puppet_of, video_id
from jostle.training.clips import evenly_spaced
from studies.harness import map_in_processes

BACKGROUND = len(CLASSES)
FILMS = 400  # untrimmed: those of the subset `extractor`, and more of the same kind
CLIPS = 180  # trimmed, of each class
RECOGNITION_CLIPS = 300  # of each class
CLIP_FRAMES = 32  # of a clip for recognisers
JOINTS = ("hip", "neck", "head", "elbows", "hands", "knees", "ankles")
POINTS = 11  # the pairs counted twice

Span = tuple[float, float, str]
SHARED: dict[str, npt.NDArray[Any]] = {}  # arrays that forked processes fill


@dataclass(frozen=True, eq=False)
class Films:
    """Frames of films, one film after the other.

    Attributes:
        frames: (N, H, W, 3).
        joints: (N, POINTS, 2) x and y of the main puppet's joints in pixels; None for films that were decoded.
        height: (N,) of the main puppet in pixels.
        first: (M,) first frame of every window that lies in one film.
        label: (M,) its class, or `BACKGROUND`.
        acting: (N,) the class of each frame, or `BACKGROUND`.
    """

    frames: npt.NDArray[np.uint8]
    joints: npt.NDArray[np.float32] | None
    height: npt.NDArray[np.float32] | None
    first: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    acting: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DrawnClips:
    """Drawn clips for the pretraining of recognisers.

    Attributes:
        frames: (N, CLIP_FRAMES, H, W, 3).
        joints: (N, CLIP_FRAMES, POINTS, 2) x and y of the puppet's joints in pixels.
        label: (N,).
    """

    frames: npt.NDArray[np.uint8]
    joints: npt.NDArray[np.float32]
    label: npt.NDArray[np.int64]


def draw_shared(
    arrays: dict[str, tuple[tuple[int, ...], Any]], draw: Callable[[int], None], count: int, *, jobs: int, chunk: int
) -> dict[str, npt.NDArray[Any]]:
    """Fill arrays in shared memory by several processes, which find them in `SHARED`; return them.

    Args:
        arrays: shape and type of each.
        draw: draws one film, by its number below `count`.
    """
    for name, (shape, dtype) in arrays.items():
        memory = mmap.mmap(-1, int(np.prod(shape)) * np.dtype(dtype).itemsize)
        SHARED[name] = np.frombuffer(memory, dtype).reshape(shape)
    draw(0)  # compiles the kernels before processes are forked
    map_in_processes(draw, range(count), jobs, method="fork", chunk=chunk)  # forked once the memory is there
    return {name: SHARED[name] for name in arrays}


def joint_positions(film: Film) -> npt.NDArray[np.float64]:
    """Return (T, POINTS, 2) x and y of the main puppet's joints in pixels."""
    scene = film.scene
    points: list[npt.NDArray[np.complex128]] = []
    for name in JOINTS:
        joint = getattr(scene.motions[0].body, name)
        points += list(joint) if isinstance(joint, tuple) else [joint]
    pixels = [(point - scene.lens.centre) * scene.lens.zoom + complex(SIZE[1], SIZE[0]) / 2 for point in points]
    return np.stack([np.stack([point.real, point.imag], -1) for point in pixels], 1)


def extractor_film(number: int, seed: int) -> Film:
    """Return a film of the extractor's own cast; the first ones are those of the subset `extractor`."""
    cast = CASTS["extractor"]
    if number < FILMS:
        return untrimmed(seed, video_id("extractor", number + 1), cast=cast)
    label = CLASSES[(number - FILMS) % len(CLASSES)]
    name = f"puppet_extractor_{label}_{number:05d}"
    return trimmed(seed, name, label=label, puppet=cast[puppet_of(seed, "train", name) % len(cast)])


def draw_films(*, window: int, jobs: int, seed: int = 0, clips: int = CLIPS) -> Films:
    """Draw the films of the extractor."""
    count = FILMS + clips * len(CLASSES)
    plans = map_in_processes(partial(_plan_film, seed=seed), range(count), jobs, method="fork", chunk=32)
    lengths, actions = [length for length, _ in plans], [spans for _, spans in plans]
    total = int(np.sum(lengths))
    SHARED["starts"] = np.cumsum(lengths) - lengths
    shapes = {
        "frames": ((total, *SIZE, 3), np.uint8),
        "joints": ((total, POINTS, 2), np.float32),
        "height": ((total,), np.float32),
    }
    arrays = draw_shared(shapes, partial(_draw_film, seed=seed), count, jobs=jobs, chunk=4)
    first, label = _windows(lengths, actions, window, 1)
    return Films(**arrays, first=first, label=label, acting=_windows(lengths, actions, 1, 1)[1])


def _plan_film(number: int, seed: int) -> tuple[int, list[Span]]:
    film = extractor_film(number, seed)
    return film.frames, [(24 * action.start, 24 * action.end, action.label) for action in film.actions]


def _draw_film(number: int, seed: int) -> None:
    film = extractor_film(number, seed)
    start = int(SHARED["starts"][number])
    span = slice(start, start + film.frames)
    SHARED["frames"][span] = film.draw(0, film.frames)
    SHARED["joints"][span] = joint_positions(film)
    SHARED["height"][span] = film.stage.parts[0].height * film.scene.lens.zoom


def load_films(subset: str, *, window: int, jobs: int, stride: int) -> Films:
    """Decode a subset of the data set."""
    data = jostle.load_dataset("puppets", subset=subset, jobs=jobs)
    truth = data.truth
    clips = map_in_processes(_read_frames, [data.videos[name] for name in truth.videos], jobs, method="fork")
    actions = [
        [
            (truth.start[row] * truth.fps[v], truth.end[row] * truth.fps[v], truth.classes[truth.label[row]])
            for row in np.flatnonzero(truth.video == v)
        ]
        for v in range(len(truth.videos))
    ]
    lengths = [len(clip) for clip in clips]
    first, label = _windows(lengths, actions, window, stride)
    return Films(np.concatenate(clips), None, None, first, label, _windows(lengths, actions, 1, 1)[1])


def _read_frames(path: Path) -> npt.NDArray[np.uint8]:
    return jostle.read(path).frames


def _windows(
    lengths: Sequence[int], actions: Sequence[Sequence[Span]], window: int, stride: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first frame of every window, and the class that fills at least half of it."""
    first, label = [], []
    offset = 0
    for length, spans in zip(lengths, actions, strict=True):
        starts = np.arange(0, length - window + 1, stride)
        best, chosen = np.full(len(starts), window / 2), np.full(len(starts), BACKGROUND)
        for lo, hi, name in spans:
            inside = np.minimum(starts + window, hi) - np.maximum(starts, lo)
            better = inside >= best
            best, chosen = np.where(better, inside, best), np.where(better, CLASSES.index(name), chosen)
        first.append(starts + offset)
        label.append(chosen)
        offset += length
    return np.concatenate(first), np.concatenate(label)


def recognition_film(number: int, seed: int) -> Film:
    """Return a clip of the extractor's own cast."""
    label, cast = CLASSES[number % len(CLASSES)], CASTS["extractor"]
    name = f"puppet_first_{label}_{number:05d}"
    return trimmed(seed, name, label=label, puppet=cast[key_for(seed, "first", name) % len(cast)])


def draw_clips(*, jobs: int, seed: int = 0, clips: int = RECOGNITION_CLIPS) -> DrawnClips:
    """Draw clips of puppets that no split has."""
    count = clips * len(CLASSES)
    shapes = {
        "frames": ((count, CLIP_FRAMES, *SIZE, 3), np.uint8),
        "joints": ((count, CLIP_FRAMES, POINTS, 2), np.float32),
    }
    arrays = draw_shared(shapes, partial(_draw_clip, seed=seed), count, jobs=jobs, chunk=8)
    return DrawnClips(arrays["frames"], arrays["joints"], np.arange(count) % len(CLASSES))


def _draw_clip(number: int, seed: int) -> None:
    film = recognition_film(number, seed)
    times = evenly_spaced(film.frames, CLIP_FRAMES)
    SHARED["frames"][number] = np.concatenate([film.draw(int(t), int(t) + 1) for t in times])
    SHARED["joints"][number] = joint_positions(film)[times]


assert VIDEOS["extractor"] <= FILMS
