"""Untrimmed videos of the puppet data set, films of 40 to 90 seconds, and their annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.generated_files import fill
from jostle.datasets.puppets.film import CLASSES, FPS, Film, Keyed, untrimmed, write_film
from jostle.datasets.puppets.parameters import CASTS, VIDEOS, folder_name, video_id
from jostle.io.files.annotations import read_truth, write_truth

ANNOTATIONS = "annotations.json"


@dataclass(frozen=True)
class Video(Keyed):
    """The recipe of one untrimmed video."""

    seed: int
    subset: str
    number: int

    @property
    def id(self) -> str:
        """Id of the video in annotations."""
        return video_id(self.subset, self.number)

    @property
    def name(self) -> str:
        return f"{self.subset}/{self.id}.mp4"

    def film(self) -> Film:
        """Plan the film; nothing is drawn yet."""
        return untrimmed(self.seed, self.id, cast=CASTS[self.subset])

    def write(self, path: Path) -> None:
        """Draw the film and write it."""
        write_film(self.film(), path)


@dataclass(frozen=True)
class Annotations(Keyed):
    """The recipe of the annotations of all subsets: films are planned for it, but not drawn."""

    seed: int
    videos: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        return ANNOTATIONS

    def write(self, path: Path) -> None:
        """Plan every film and write its actions."""
        videos = [video for subset, count in self.videos for video in videos_of(self.seed, subset, count)]
        write_truth(truth_of({v.id: v.film() for v in videos}, [v.subset for v in videos]), path, format="thumos14")


def videos_of(seed: int, subset: str, count: int) -> list[Video]:
    """Return the recipes of the first `count` videos of a subset."""
    return [Video(seed, subset, number) for number in range(1, count + 1)]


def truth_of(films: Mapping[str, Film], subsets: list[str]) -> Truth:
    """Return the actions of films as annotations, with classes numbered alphabetically."""
    actions = [(i, action) for i, film in enumerate(films.values()) for action in film.actions]
    return Truth(
        videos=tuple(films),
        classes=CLASSES,
        video=np.array([i for i, _ in actions], np.int32),
        start=np.array([action.start for _, action in actions], np.float64),
        end=np.array([action.end for _, action in actions], np.float64),
        label=np.array([CLASSES.index(action.label) for _, action in actions], np.int32),
        subsets=tuple(subsets),
        duration=np.array([film.frames / FPS for film in films.values()], np.float64),
        fps=np.full(len(films), float(FPS)),
        label_ids=tuple(range(len(CLASSES))),
    )


@dataset("puppets", subsets=tuple(VIDEOS))
def puppets(request: Request, *, counts: Mapping[str, int] = VIDEOS) -> Dataset:
    """Untrimmed films of puppets for action detection: 16 classes, 40 to 90 s, 24 frames a second, 112 by 112."""
    folder = request.root / folder_name(request.seed)
    done = fill(folder, [Annotations(request.seed, tuple(counts.items()))], verify=request.verify)
    planned = videos_of(request.seed, request.subset, counts[request.subset])
    videos = planned[: request.first]
    done += fill(folder, videos, jobs=request.jobs, verify=request.verify, progress=request.progress)
    truth = read_truth(folder / ANNOTATIONS, subset=request.subset)
    files = {video.id: folder / video.name for video in videos}
    missing = tuple(video.id for video in planned[len(videos) :])
    return Dataset("puppets", request.subset, folder, (truth,), files, done, missing=missing)
