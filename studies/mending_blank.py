"""How many frames each kind of `puppets-c` leaves of one colour in the test films, where the inspector's rule speaks.

    python -m studies.mending_blank [--jobs 12]

Under a kind that leaves none, only the network can find what was struck.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import jostle
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.stages import ClipSource, chain, gather, origins
from jostle.mending.blank_frames import find_blank
from jostle.mending.descriptor import describe_frames
from jostle.parallel.workers import map_unordered
from studies.cells import CORRUPTIONS
from studies.mending_cells import GROUPS

Film = tuple[str, Path, list[tuple[float, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    jobs = parser.parse_args().jobs
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
    from studies import mending_blank  # by this name worker processes find it

    mending_blank.main()
