"""Clips to begin with: drawn in memory, of puppets that no split has, with their classes and where the joints are."""

from __future__ import annotations

import mmap
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.core.random import key_for
from jostle.datasets.puppets.film import CLASSES, SIZE, Film, trimmed
from jostle.datasets.puppets.splits import CASTS
from jostle.training.clips import evenly_spaced
from studies.films import JOINTS, POINTS

CLIPS = 300  # of each class
KEPT = 32  # frames of a clip


@dataclass(frozen=True, eq=False)
class DrawnClips:
    """Clips and what is known of them.

    Attributes:
        frames: (N, KEPT, H, W, 3).
        joints: (N, KEPT, POINTS, 2) x and y of the puppet's joints in pixels.
        label: (N,).
    """

    frames: npt.NDArray[np.uint8]
    joints: npt.NDArray[np.float32]
    label: npt.NDArray[np.int64]


def first_film(number: int, seed: int) -> Film:
    """A clip of the extractor's own cast."""
    label, cast = CLASSES[number % len(CLASSES)], CASTS["extractor"]
    name = f"puppet_first_{label}_{number:05d}"
    return trimmed(seed, name, label=label, puppet=cast[key_for(seed, "first", name) % len(cast)])


def draw_clips(*, jobs: int, seed: int = 0, clips: int = CLIPS) -> DrawnClips:
    """Draw clips, several at once, into memory that all share."""
    count = clips * len(CLASSES)
    shapes = ((count, KEPT, *SIZE, 3), (count, KEPT, POINTS, 2))
    shared = (mmap.mmap(-1, int(np.prod(shapes[0]))), mmap.mmap(-1, 4 * int(np.prod(shapes[1]))))
    frames = np.frombuffer(shared[0], np.uint8).reshape(shapes[0])
    joints = np.frombuffer(shared[1], np.float32).reshape(shapes[1])
    _target.update(frames=frames, joints=joints)
    _draw(0, seed)  # compiles what draws, before it is forked
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:  # forked after the memory is there
        list(pool.map(_draw, range(count), [seed] * count, chunksize=8))
    return DrawnClips(frames, joints, np.arange(count) % len(CLASSES))


_target: dict[str, npt.NDArray[np.generic]] = {}


def _draw(number: int, seed: int) -> None:
    film = first_film(number, seed)
    places = evenly_spaced(film.frames, KEPT)
    _target["frames"][number] = np.concatenate([film.draw(int(t), int(t) + 1) for t in places])
    scene = film.scene
    body = scene.motions[0].body
    points: list[npt.NDArray[np.complex128]] = []
    for name in JOINTS:
        found = getattr(body, name)
        points += list(found) if isinstance(found, tuple) else [found]
    for j, point in enumerate(points):
        seen = ((point - scene.lens.centre) * scene.lens.zoom + complex(SIZE[1], SIZE[0]) / 2)[places]
        _target["joints"][number, :, j] = np.stack([seen.real, seen.imag], axis=1)
