"""The plain rule for frames of one colour by itself: on stretches of all lengths, on content, and on `puppets-c`.

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
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.stages import ClipSource, chain, gather, origins
from jostle.mending.blank_frames import MAX_GAP, find_blank, find_lost
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import Descriptors
from jostle.parallel.workers import map_unordered
from jostle.training.descriptor_bank import read_bank
from studies.detection import CORRUPTIONS
from studies.harness import CORES, parse_arguments
from studies.inspector_films import draw_film
from studies.mending_cells import GROUPS

GREYS = (0, 128, 255)
LENGTHS = (1, 5, 12, 24, 48, MAX_GAP)
STEP = 7  # frames between two places that are tried
SETS = ("filmed elsewhere", "puppets of another cast")
CONTENT = ("fades", "flashes", "cuts")
DRAWN, FRAMES, SEED = 40, 100, 77  # films of each kind of content that no other part of the study has drawn


Film = tuple[str, Path, list[tuple[float, float]]]


def lost(seen: Descriptors) -> npt.NDArray[np.bool_]:
    """(T,) frames of which the rule says that they stand where a picture was lost."""
    return find_lost(find_blank(seen), lambda a, b: seen[a:b])


def found(films: list[Descriptors], grey: int, many: int) -> tuple[int, int]:
    """Stretches that are found from end to end, of how many."""
    flat, hit, of = describe_frames([np.full((64, 64, 3), grey, np.uint8)]), 0, 0
    for film in films:
        for at in range(3, len(film) - many - 2, STEP):
            struck = film.copy()
            struck[at : at + many] = flat
            hit, of = hit + int(lost(struck)[at : at + many].all()), of + 1
    return hit, of


def taken_for_one(films: list[Descriptors]) -> tuple[int, int]:
    """Of pairs of films with half a second of black between, those that are taken for one scene."""
    black = np.repeat(describe_frames([np.zeros((64, 64, 3), np.uint8)]), 12, axis=0)
    said = [
        lost(np.concatenate([one, black, other]))[len(one) : len(one) + len(black)].all()
        for one, other in itertools.permutations(films, 2)
    ]
    return int(np.sum(said)), len(said)


def main() -> None:
    arguments = parse_arguments(__doc__, jobs=CORES)
    bank = read_bank(arguments.work / "held.bank")
    clean = [lost(bank.frames[film.first : film.first + film.count]) for film in bank.films]
    print(f"clean films: {sum(int(one.sum()) for one in clean)} of {sum(map(len, clean))} frames taken for lost ones")
    for name in SETS:
        films = [bank.frames[film.first : film.first + film.count] for film in bank.films if film.kind == name]
        for grey in GREYS:
            shares = [(many, found(films, grey, many)) for many in LENGTHS]
            print(f"{name}, grey {grey}: " + ", ".join(f"{many} {hit} of {of}" for many, (hit, of) in shares))
        hit, of = taken_for_one(films)
        print(f"{name}: {hit} of {of} pairs with black between taken for one scene", flush=True)
    for kind in CONTENT:
        drawn = [describe_frames(draw_film(f"more {kind} {n}", FRAMES, seed=SEED, only=kind)) for n in range(DRAWN)]
        blank, false = (sum(int(said(film).sum()) for film in drawn) for said in (find_blank, lost))
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
    for _, counted in map_unordered(_counter, films, jobs):
        every.update(counted)
    for kind in CORRUPTIONS:
        print(f"{kind}: {every[kind, 'blank']} of {every[kind, 'struck']} struck frames are of one colour")


def _counter() -> Callable[[Film], Counter[tuple[str, str]]]:
    import cv2

    cv2.setNumThreads(1)
    return _counted


def _counted(film: Film) -> Counter[tuple[str, str]]:
    name, path, actions = film
    clip, made = jostle.read(path), Counter[tuple[str, str]]()
    source = ClipSource(clip)
    timeline = Timeline.of(clip.pts, clip.fps, Segments.from_pairs(np.array(actions)), video_id=name)
    for cell in GROUPS["main"]:
        masks = masks_for(cell.specs, cell.placement, timeline)
        top = chain(source, cell.specs, masks, seed=0, video_id=name)
        struck = np.flatnonzero(origins(top) != np.arange(len(clip)))
        kind = cell.specs[0].name.rpartition("/")[2]
        made[kind, "struck"] += len(struck)
        made[kind, "blank"] += int(find_blank(describe_frames(gather(top, struck))).sum())
    return made


if __name__ == "__main__":
    from studies import blank_frames  # the name by which worker processes find it

    blank_frames.main()
