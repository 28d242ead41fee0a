"""The rule for frames of one colour alone: on stretches of all lengths, on undamaged content, and on `puppets-c`.

    python -m studies.blank_frames WORK [--jobs 12]

WORK holds `held.bank`, which `studies.inspector WORK films` makes. In its films frames are replaced by ones of one
colour, here and there; two of them are put together with black between; and films of fades, flashes and cuts are drawn.
Last it counts the frames that each kind of `puppets-c` leaves of one colour in the test films.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.types.segments import Segments
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.stages import chain, gather, origins
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS
from jostle.mending.blank_frames import MAX_GAP, find_blank, find_lost
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import Descriptors
from jostle.parallel.workers import map_unordered
from jostle.training.descriptor_bank import read_bank
from studies.harness import CORES, parse_arguments, run_module
from studies.inspector_films import draw_film
from studies.mending import GROUPS

GREYS = (0, 128, 255)
LENGTHS = (1, 5, 12, 24, 48, MAX_GAP)
STEP = 7  # frames between two places that are tried
SETS = ("filmed elsewhere", "puppets of another cast")
CONTENT = ("fades", "flashes", "cuts")
DRAWN, FRAMES, SEED = 40, 100, 77  # films of each kind of content that no other part of the study has drawn


Film = tuple[str, Path, list[tuple[float, float]]]


def find_lost_frames(descriptors: Descriptors) -> npt.NDArray[np.bool_]:
    """Return (T,) the frames that the rule takes for lost pictures."""
    return find_lost(find_blank(descriptors), lambda a, b: descriptors[a:b])


def count_found(films: list[Descriptors], grey: int, length: int) -> tuple[int, int]:
    """Return how many stretches of one grey are found from end to end, and the number of stretches."""
    flat, hits, total = describe_frames([np.full((64, 64, 3), grey, np.uint8)]), 0, 0
    for film in films:
        for at in range(3, len(film) - length - 2, STEP):
            damaged = film.copy()
            damaged[at : at + length] = flat
            hits, total = hits + int(find_lost_frames(damaged)[at : at + length].all()), total + 1
    return hits, total


def count_joined(films: list[Descriptors]) -> tuple[int, int]:
    """Return how many pairs of films with half a second of black between are taken for one scene, and of how many."""
    black = np.repeat(describe_frames([np.zeros((64, 64, 3), np.uint8)]), 12, axis=0)
    joined = [
        find_lost_frames(np.concatenate([one, black, other]))[len(one) : len(one) + len(black)].all()
        for one, other in itertools.permutations(films, 2)
    ]
    return int(np.sum(joined)), len(joined)


def main() -> None:
    """Print what the rule finds in every set of films."""
    arguments = parse_arguments(__doc__, jobs=CORES)
    bank = read_bank(arguments.work / "held.bank")
    clean = [find_lost_frames(bank.frames[film.first : film.first + film.count]) for film in bank.films]
    print(f"clean films: {sum(int(one.sum()) for one in clean)} of {sum(map(len, clean))} frames taken for lost ones")
    for name in SETS:
        films = [bank.frames[film.first : film.first + film.count] for film in bank.films if film.kind == name]
        for grey in GREYS:
            shares = [(length, count_found(films, grey, length)) for length in LENGTHS]
            print(
                f"{name}, grey {grey}: " + ", ".join(f"{length} {hits} of {total}" for length, (hits, total) in shares)
            )
        hits, total = count_joined(films)
        print(f"{name}: {hits} of {total} pairs with black between taken for one scene", flush=True)
    for kind in CONTENT:
        drawn = [describe_frames(draw_film(f"more {kind} {n}", FRAMES, seed=SEED, only=kind)) for n in range(DRAWN)]
        blank, false = (sum(int(rule(film).sum()) for film in drawn) for rule in (find_blank, find_lost_frames))
        print(f"{kind}: {blank} of {DRAWN * FRAMES} frames blank, {false} taken for lost ones", flush=True)
    count_in_benchmark(arguments.jobs)


def count_in_benchmark(jobs: int) -> None:
    """Print how many corrupted frames of the test films are of one colour, by kind."""
    data = jostle.load_dataset("puppets", subset="test", jobs=jobs)
    truth, films = data.truth, []
    for row, name in enumerate(truth.videos):
        mine = truth.video == row
        films.append((name, Path(data.videos[name]), [*zip(truth.start[mine], truth.end[mine], strict=True)]))
    every: Counter[tuple[str, str]] = Counter()
    for _, counts in map_unordered(_start_counting, films, jobs):
        every.update(counts)
    for kind in CORRUPTIONS:
        print(f"{kind}: {every[kind, 'blank']} of {every[kind, 'damaged']} damaged frames are of one colour")


def _start_counting() -> Callable[[Film], Counter[tuple[str, str]]]:
    import cv2

    cv2.setNumThreads(1)
    return _count_film


def _count_film(film: Film) -> Counter[tuple[str, str]]:
    name, path, actions = film
    clip, counts = jostle.read(path), Counter[tuple[str, str]]()
    source = ClipSource(clip)
    timeline = Timeline.of(clip.pts, clip.fps, Segments.from_pairs(np.array(actions)), video_id=name)
    for cell in GROUPS["main"]:
        masks = masks_for(cell.specs, cell.placement, timeline)
        top = chain(source, cell.specs, masks, seed=0, video_id=name)
        damaged = np.flatnonzero(origins(top) != np.arange(len(clip)))
        kind = cell.specs[0].name.rpartition("/")[2]
        counts[kind, "damaged"] += len(damaged)
        counts[kind, "blank"] += int(find_blank(describe_frames(gather(top, damaged))).sum())
    return counts


if __name__ == "__main__":
    run_module("studies.blank_frames")
