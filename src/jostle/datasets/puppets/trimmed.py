"""The trimmed clips: one action each, for recognition, in a folder a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.generated_files import fill
from jostle.datasets.puppets.film import CLASSES, Film, Keyed, trimmed, write_film
from jostle.datasets.puppets.parameters import CLIPS, clip_id, folder_name, puppet_of
from jostle.datasets.puppets.untrimmed import ANNOTATIONS, truth_of
from jostle.io.files.annotations import read_truth, write_truth, write_video_labels
from jostle.io.files.atomic import write_text

FOLDER = "trimmed"


@dataclass(frozen=True)
class TrimmedClip(Keyed):
    """The recipe of one trimmed clip."""

    seed: int
    subset: str
    label: str
    number: int

    @property
    def id(self) -> str:
        """Id of the clip in annotations."""
        return clip_id(self.subset, self.label, self.number)

    @property
    def name(self) -> str:
        return f"{self.subset}/{self.label}/{self.id}.mp4"

    def film(self) -> Film:
        """Plan the film; nothing is drawn yet."""
        puppet = puppet_of(self.seed, self.subset, self.id)
        return trimmed(self.seed, self.id, label=self.label, puppet=puppet)

    def write(self, path: Path) -> None:
        """Draw the film and write it."""
        write_film(self.film(), path)


@dataclass(frozen=True)
class ClipAnnotations(Keyed):
    """The recipe of where the action lies in each clip, of all subsets."""

    seed: int
    clips: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        return ANNOTATIONS

    def write(self, path: Path) -> None:
        """Plan every clip and write when its action begins and ends."""
        clips = [clip for subset, count in self.clips for clip in clips_of(self.seed, subset, count)]
        write_truth(truth_of({c.id: c.film() for c in clips}, [c.subset for c in clips]), path, format="thumos14")


@dataclass(frozen=True)
class ClipList(Keyed):
    """The recipe of a list `path class-number`, as recognition reads it; paths begin in the folder of the list."""

    seed: int
    subset: str
    clips: int

    @property
    def name(self) -> str:
        return f"{self.subset}.txt"

    def write(self, path: Path) -> None:
        """Write one line a clip."""
        clips = clips_of(self.seed, self.subset, self.clips)
        labels = VideoLabels(
            videos=tuple(clip.id for clip in clips),
            classes=tuple(map(str, range(len(CLASSES)))),
            video=np.arange(len(clips), dtype=np.int32),
            label=np.array([CLASSES.index(clip.label) for clip in clips], np.int32),
            numbered=True,
            paths=tuple(clip.name for clip in clips),
        )
        write_video_labels(labels, path, format="video-list")


@dataclass(frozen=True)
class ClassList(Keyed):
    """The recipe of the class names, one a line, the first of number 0."""

    name: str = "classes.txt"

    def write(self, path: Path) -> None:
        """Write the names of the classes, one a line."""
        write_text(path, (f"{label}\n" for label in CLASSES))


def clips_of(seed: int, subset: str, count: int) -> list[TrimmedClip]:
    """Return the recipes of the first `count` clips of every class."""
    return [TrimmedClip(seed, subset, label, number) for label in CLASSES for number in range(1, count + 1)]


@dataset("puppets-trimmed", subsets=tuple(CLIPS), task="recognition")
def puppets_trimmed(request: Request, *, counts: Mapping[str, int] = CLIPS) -> Dataset:
    """Clips of puppets for action recognition: one action each, with a list of paths and class numbers."""
    folder = request.root / folder_name(request.seed) / FOLDER
    lists = [ClipList(request.seed, subset, count) for subset, count in counts.items()]
    annotations = ClipAnnotations(request.seed, tuple(counts.items()))
    done = fill(folder, [annotations, ClassList(), *lists], verify=request.verify)
    clips = clips_of(request.seed, request.subset, counts[request.subset])
    done += fill(folder, clips, jobs=request.jobs, verify=request.verify, progress=request.progress)
    truth = read_truth(folder / ANNOTATIONS, subset=request.subset)
    labels = VideoLabels(
        videos=tuple(clip.id for clip in clips),
        classes=CLASSES,
        video=np.arange(len(clips), dtype=np.int32),
        label=np.array([CLASSES.index(clip.label) for clip in clips], np.int32),
        paths=tuple(clip.name for clip in clips),
    )
    videos = {clip.id: folder / clip.name for clip in clips}
    return Dataset("puppets-trimmed", request.subset, folder, (labels, truth), videos, done)
