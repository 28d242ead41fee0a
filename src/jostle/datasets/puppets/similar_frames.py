"""Sets of similar frames around anchors, on the prop that the main puppet holds.

Shankar et al. (2021) had people judge whether a frame still looks like its anchor. Here one number decides: of two
frames in grey, one is shifted by whole pixels to lie on the other as well as it can, for cameras move; then the
frames are cut into tiles, and the mean absolute difference in the worst tile must not exceed `MOST_DIFFERENT`
grey levels. Everything is counted in whole numbers, so the sets are the same on every machine. A frame must also show
the prop of its anchor, or its label would be another.

A frame is named by its video and its number there, from 0: `puppet_test_0001/000432`. No images are written, as
`jostle.read(videos["puppet_test_0001"], 432, 433)` gives the frame.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.random import rng_for
from jostle.core.types.boxes import Boxes
from jostle.core.types.clip import Frame, Frames
from jostle.core.types.frame_sets import BoxSets, FrameSets
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.generated_files import FileRecipe, fill
from jostle.datasets.puppets.film import PUPPET, Film, Held, Keyed
from jostle.datasets.puppets.parameters import VIDEOS, folder_name
from jostle.datasets.puppets.props import PROPS
from jostle.datasets.puppets.untrimmed import Video, puppets, videos_of
from jostle.io.files.atomic import write_text
from jostle.io.files.text import read_json
from jostle.io.formats.boxes import boxes_to_lists, read_true_boxes
from jostle.io.formats.frame_scores import read_frame_labels, read_frame_sets

K = 10  # neighbours on either side
EVERY = 96  # frames: a stretch of so many has one anchor, and sets do not meet
LEAST_AREA = 16  # pixels of a prop that must be seen
SHIFT = 4  # pixels that the camera may move between two frames
TILES = 4  # along each side
MOST_DIFFERENT = 16  # grey levels, on average over the worst tile

FOLDER = "frames"
LABELS = tuple(sorted(PROPS))  # their places are the class numbers

Grey = npt.NDArray[np.uint8]


def difference(frame: Grey, other: Grey) -> float:
    """Return the difference of two frames in grey levels in the worst tile, after the best shift of one.

    >>> frame = np.random.default_rng(0).integers(0, 256, (112, 112), np.uint8)
    >>> difference(frame, np.roll(frame, 3, axis=1)), difference(frame, frame[::-1]) > 50
    (0.0, True)
    """
    height, width = (side - 2 * SHIFT for side in frame.shape)
    middle = frame[SHIFT : SHIFT + height, SHIFT : SHIFT + width]
    shifted = [
        other[top : top + height, left : left + width] for top in range(2 * SHIFT + 1) for left in range(2 * SHIFT + 1)
    ]
    best = min(shifted, key=lambda overlap: cv2.norm(middle, overlap, cv2.NORM_L1))
    tiles = cv2.absdiff(middle, best)[: height // TILES * TILES, : width // TILES * TILES]
    sums = tiles.reshape(TILES, height // TILES, TILES, width // TILES).sum((1, 3), dtype=np.int64)
    return float(sums.max() / (height // TILES * (width // TILES)))


def anchors(seed: int, film: str, held: Held) -> Iterator[tuple[int, list[int]]]:
    """Yield the anchors of a film, each with the frames within `K` that show the same prop."""
    names, visible = held.names, held.area >= LEAST_AREA
    for first in range(0, len(names) - EVERY + 1, EVERY):
        able = [t for t in range(first + K, first + EVERY - K) if names[t] and visible[t]]
        if not able:
            continue
        anchor = able[int(rng_for(seed, "puppets", "anchor", film, first).integers(len(able)))]
        near = range(anchor - K, anchor + K + 1)
        yield anchor, [t for t in near if t != anchor and names[t] == names[anchor] and visible[t]]


def similar_frames(frames: Frames, anchor: int, candidates: Sequence[int]) -> list[int]:
    """Return the candidates similar to the anchor; all are indices into `frames`."""
    grey = {t: _grey(frames[t]) for t in (anchor, *candidates)}
    return [t for t in candidates if difference(grey[anchor], grey[t]) <= MOST_DIFFERENT]


def kept_frames(film: Film, held: Held) -> Iterator[tuple[int, list[int]]]:
    """Return the anchors of a film, each with the similar frames around it."""
    for anchor, candidates in anchors(film.seed, film.name, held):
        first = anchor - K
        frames = film.draw(first, anchor + K + 1)
        yield anchor, [first + t for t in similar_frames(frames, K, [t - first for t in candidates])]


def frame_name(video: Video, number: int) -> str:
    """Return the name of a frame in annotations."""
    return f"{video.id}/{number:06d}"


def _grey(frame: Frame) -> Grey:
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(frame), cv2.COLOR_RGB2GRAY), np.uint8)


@dataclass(frozen=True)
class VideoSets(Keyed):
    """The recipe of the sets in one video, and of the labels of their frames."""

    video: Video
    measure: tuple[int, ...] = (K, EVERY, LEAST_AREA, SHIFT, TILES, MOST_DIFFERENT)

    @property
    def name(self) -> str:
        return f"videos/{self.video.id}.json"

    def write(self, path: Path) -> None:
        """Draw the frames around each anchor and compare them with it."""
        film = self.video.film()
        held = film.held()
        sets, labels = {}, {}
        for anchor, anchor_sets in kept_frames(film, held):
            sets[frame_name(self.video, anchor)] = [frame_name(self.video, t) for t in anchor_sets]
            for t in sorted((anchor, *anchor_sets)):
                labels[frame_name(self.video, t)] = [LABELS.index(held.names[t])]
        write_text(path, [json.dumps({"sets": sets, "labels": labels}, indent=0), "\n"])


@dataclass(frozen=True)
class Gathered(Keyed):
    """The recipe of a file with the sets, or the labels, of all videos."""

    name: str
    part: str
    folder: Path = field(repr=False)  # a cache may be moved
    sets: tuple[FileRecipe, ...]

    def write(self, path: Path) -> None:
        """Merge the files of all videos."""
        write_text(path, [json.dumps(self.joined(), indent=0), "\n"])

    def joined(self) -> dict[str, Any]:
        """Return the merged content of all videos, by frame."""
        merged: dict[str, Any] = {}
        for one in self.sets:
            merged |= read_json(self.folder / one.name)[self.part]
        return merged


@dataclass(frozen=True)
class PropList(Keyed):
    """The recipe of the names of props, one a line, the first of number 0."""

    name: str = "classes.txt"

    def write(self, path: Path) -> None:
        """Write the names of the props, one a line."""
        write_text(path, (f"{prop}\n" for prop in LABELS))


@dataset("puppets-frames", subsets=tuple(VIDEOS), task="frames")
def puppets_frames(request: Request, *, counts: Mapping[str, int] = VIDEOS) -> Dataset:
    """Frames of the untrimmed puppets for pm-k: which prop is held, at anchors and in similar frames around them."""
    videos = puppets(request, counts=counts)
    folder = request.root / folder_name(request.seed) / FOLDER / request.subset
    sets = tuple(VideoSets(video) for video in videos_of(request.seed, request.subset, counts[request.subset]))
    done = videos.files + fill(folder, sets, jobs=request.jobs, verify=request.verify, progress=request.progress)
    lists = [Gathered("pmsets.json", "sets", folder, sets), Gathered("labels.json", "labels", folder, sets)]
    done += fill(folder, [PropList(), *lists], verify=request.verify)
    frames = FrameSets(read_frame_sets(folder / "pmsets.json"), read_frame_labels(folder / "labels.json"))
    return Dataset("puppets-frames", request.subset, folder, (frames, videos.truth), videos.videos, done)


BOX_FOLDER = "boxes"
CLASSES = (*sorted(PROPS), PUPPET)  # their places are the class numbers


def boxes_of(film: Film, numbers: Sequence[int]) -> dict[int, Boxes]:
    """Return the boxes in some frames of a film."""
    boxes = {}
    for t in numbers:
        things = film.things(t, t + 1)
        there = things.area[0] >= LEAST_AREA
        labels = np.array([CLASSES.index(name) for name in things.names], np.int64)
        boxes[t] = Boxes(things.box[0][there].astype(np.float64), labels[there])
    return boxes


@dataclass(frozen=True)
class VideoBoxes(VideoSets):
    """The recipe of the sets in one video, and of the boxes in their frames."""

    def write(self, path: Path) -> None:
        """Draw the frames around each anchor, compare them with it, and locate their objects."""
        film, sets, boxes = self.video.film(), {}, {}
        for anchor, anchor_sets in kept_frames(film, film.held()):
            sets[frame_name(self.video, anchor)] = [frame_name(self.video, t) for t in anchor_sets]
            for t, boxes_by_frame in boxes_of(film, sorted((anchor, *anchor_sets))).items():
                boxes[frame_name(self.video, t)] = boxes_to_lists(boxes_by_frame)
        write_text(path, [json.dumps({"sets": sets, "boxes": boxes}, indent=0), "\n"])


@dataclass(frozen=True)
class AllBoxes(Gathered):
    """The recipe of a file with the boxes of all videos, and the names of their classes."""

    classes: tuple[str, ...] = CLASSES

    def write(self, path: Path) -> None:
        """Merge the boxes of all videos, under the names of the classes."""
        write_text(path, [json.dumps({"classes": self.classes, "boxes": self.joined()}, indent=0), "\n"])


@dataset("puppets-boxes", subsets=tuple(VIDEOS), task="objects")
def puppets_boxes(request: Request, *, counts: Mapping[str, int] = VIDEOS) -> Dataset:
    """Frames of the untrimmed puppets for pm-k of object detectors: boxes of puppets and props in similar frames."""
    videos = puppets(request, counts=counts)
    folder = request.root / folder_name(request.seed) / BOX_FOLDER / request.subset
    sets = tuple(VideoBoxes(video) for video in videos_of(request.seed, request.subset, counts[request.subset]))
    done = videos.files + fill(folder, sets, jobs=request.jobs, verify=request.verify, progress=request.progress)
    lists = [Gathered("pmsets.json", "sets", folder, sets), AllBoxes("boxes.json", "boxes", folder, sets)]
    done += fill(folder, lists, verify=request.verify)
    classes, boxes = read_true_boxes(folder / "boxes.json")
    box_sets = BoxSets(classes, read_frame_sets(folder / "pmsets.json"), boxes)
    return Dataset("puppets-boxes", request.subset, folder, (box_sets, videos.truth), videos.videos, done)
