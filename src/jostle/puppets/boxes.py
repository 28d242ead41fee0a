"""Boxes of puppets and props in the frames that look alike, for pm-k of object detectors.

Sets are those of `puppets-frames`. Since the films are drawn, where a thing is needs nobody's judgement: its box goes
around the pixels that show it, and a thing of which fewer than `LEAST_AREA` pixels are left to see is not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.datasets.box_sets import BoxSets
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.made_files import fill
from jostle.filing.boxes import plain_boxes, read_true_boxes
from jostle.filing.frames import read_frame_sets
from jostle.filing.writing import write_text
from jostle.puppets.film import PUPPET, Film
from jostle.puppets.props import PROPS
from jostle.puppets.similar import LEAST_AREA, Gathered, VideoSets, frame_name, kept_frames
from jostle.puppets.splits import VIDEOS, folder_name
from jostle.puppets.untrimmed import puppets, videos_of
from jostle.types.boxes import Boxes

FOLDER = "boxes"
CLASSES = (*sorted(PROPS), PUPPET)  # their places are the class numbers


def boxes_of(film: Film, numbers: Sequence[int]) -> dict[int, Boxes]:
    """The boxes in some frames of a film."""
    made = {}
    for t in numbers:
        seen = film.things(t, t + 1)
        there = seen.area[0] >= LEAST_AREA
        labels = np.array([CLASSES.index(name) for name in seen.names], np.int64)
        made[t] = Boxes(seen.box[0][there].astype(np.float64), labels[there])
    return made


@dataclass(frozen=True)
class VideoBoxes(VideoSets):
    """The recipe of the sets in one video, and of the boxes in their frames."""

    def write(self, path: Path) -> None:
        """Draw the frames around each anchor, compare them with it, and look where things are."""
        film, sets, boxes = self.video.film(), {}, {}
        for anchor, kept in kept_frames(film, film.held()):
            sets[frame_name(self.video, anchor)] = [frame_name(self.video, t) for t in kept]
            for t, found in boxes_of(film, sorted((anchor, *kept))).items():
                boxes[frame_name(self.video, t)] = plain_boxes(found)
        write_text(path, [json.dumps({"sets": sets, "boxes": boxes}, indent=0), "\n"])


@dataclass(frozen=True)
class AllBoxes(Gathered):
    """The recipe of a file with the boxes of all videos, and the names of their classes."""

    classes: tuple[str, ...] = CLASSES

    def write(self, path: Path) -> None:
        """Join what there is of each video, under the names of the classes."""
        write_text(path, [json.dumps({"classes": self.classes, "boxes": self.joined()}, indent=0), "\n"])


@dataset("puppets-boxes", subsets=tuple(VIDEOS), task="objects")
def puppets_boxes(request: Request, *, counts: Mapping[str, int] = VIDEOS) -> Dataset:
    """Frames of the untrimmed puppets for pm-k of object detectors: boxes of puppets and props in similar frames."""
    shown = puppets(request, counts=counts)
    folder = request.root / folder_name(request.seed) / FOLDER / request.subset
    sets = tuple(VideoBoxes(video) for video in videos_of(request.seed, request.subset, counts[request.subset]))
    done = shown.files + fill(folder, sets, jobs=request.jobs, verify=request.verify, progress=request.progress)
    lists = [Gathered("pmsets.json", "sets", folder, sets), AllBoxes("boxes.json", "boxes", folder, sets)]
    done += fill(folder, lists, verify=request.verify)
    classes, boxes = read_true_boxes(folder / "boxes.json")
    found = BoxSets(classes, read_frame_sets(folder / "pmsets.json"), boxes)
    return Dataset("puppets-boxes", request.subset, folder, (found, shown.truth), shown.videos, done)
