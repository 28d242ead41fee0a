"""Films to train `puppet_net` on: drawn in memory, with the class of every window and where the joints are."""

from __future__ import annotations

import mmap
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import jostle
from jostle.datasets.puppets.film import CLASSES, SIZE, Film, trimmed, untrimmed
from jostle.datasets.puppets.splits import CASTS, VIDEOS, puppet_of, video_id

BACKGROUND = len(CLASSES)
FILMS = 400  # untrimmed: those of the subset `extractor`, and more of the same kind
CLIPS = 180  # trimmed, of each class
JOINTS = ("hip", "neck", "head", "elbows", "hands", "knees", "ankles")
POINTS = 11  # the pairs counted twice


@dataclass(frozen=True, eq=False)
class Films:
    """Films, one after the other.

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


def extractor_film(number: int, seed: int) -> Film:
    """A film of the extractor's own cast; the first ones are those of the subset `extractor`."""
    cast = CASTS["extractor"]
    if number < FILMS:
        return untrimmed(seed, video_id("extractor", number + 1), cast=cast)
    label = CLASSES[(number - FILMS) % len(CLASSES)]
    name = f"puppet_extractor_{label}_{number:05d}"
    return trimmed(seed, name, label=label, puppet=cast[puppet_of(seed, "train", name) % len(cast)])


def draw_films(*, window: int, jobs: int, seed: int = 0, clips: int = CLIPS) -> Films:
    """Draw the films of the extractor, several at once, into memory that all share."""
    count = FILMS + clips * len(CLASSES)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, context) as pool:
        plans = list(pool.map(_plan, range(count), [seed] * count, chunksize=32))
    lengths = [length for length, _ in plans]
    ends = np.cumsum(lengths)
    pixels = int(np.prod([*SIZE, 3]))
    shared = (mmap.mmap(-1, int(ends[-1]) * pixels), mmap.mmap(-1, int(ends[-1]) * (2 * POINTS + 1) * 4))
    frames = np.frombuffer(shared[0], np.uint8).reshape(-1, *SIZE, 3)
    poses = np.frombuffer(shared[1], np.float32).reshape(-1, 2 * POINTS + 1)
    _target.update(frames=frames, poses=poses, starts=ends - lengths, seed=seed)
    with ProcessPoolExecutor(jobs, context) as pool:  # forked after the memory is there, so that all write into it
        list(pool.map(_draw, range(count), chunksize=4))
    actions = [actions for _, actions in plans]
    joints = poses[:, :-1].reshape(-1, POINTS, 2)
    return Films(
        frames, joints, poses[:, -1], *_windows(lengths, actions, window, 1), _windows(lengths, actions, 1, 1)[1]
    )


def load_films(subset: str, *, window: int, jobs: int, stride: int) -> Films:
    """Decode a subset of the data set."""
    data = jostle.load_dataset("puppets", subset=subset, jobs=jobs)
    truth = data.truth
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        clips = list(pool.map(_decoded, [data.videos[name] for name in truth.videos]))
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


Span = tuple[float, float, str]
_target: dict[str, npt.NDArray[np.float32]] = {}


def _plan(number: int, seed: int) -> tuple[int, list[Span]]:
    film = extractor_film(number, seed)
    return film.frames, [(24 * action.start, 24 * action.end, action.label) for action in film.actions]


def _draw(number: int) -> None:
    film = extractor_film(number, int(_target["seed"]))
    start = int(_target["starts"][number])
    span = slice(start, start + film.frames)
    _target["frames"][span] = film.draw(0, film.frames)
    scene = film.scene
    body = scene.motions[0].body
    points: list[npt.NDArray[np.complex128]] = []
    for name in JOINTS:
        found = getattr(body, name)
        points += list(found) if isinstance(found, tuple) else [found]
    seen = [(point - scene.lens.centre) * scene.lens.zoom + complex(SIZE[1], SIZE[0]) / 2 for point in points]
    columns = [column for point in seen for column in (point.real, point.imag)]
    _target["poses"][span] = np.stack([*columns, film.stage.parts[0].height * scene.lens.zoom], axis=1)


def _decoded(path: Path) -> npt.NDArray[np.uint8]:
    return jostle.read(path).frames


def _windows(
    lengths: Sequence[int], actions: Sequence[Sequence[Span]], window: int, stride: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Every window, and the class that fills at least half of it."""
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


assert VIDEOS["extractor"] <= FILMS
