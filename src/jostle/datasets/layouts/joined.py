"""Untrimmed videos joined from a folder of trimmed clips, with known boundaries, for action detection.

The clips are those that `folder` reads for recognition. A third of their classes, drawn by the seed, is background: its
clips are cut into stretches of 3 to 6 seconds that stand before, between and behind the actions. Every clip of another
class is an action, whole or its first 12 seconds, and is used three times, beside other clips each time. A video lasts
60 to 90 seconds or little more, in 320 x 240 at 25 frames a second.

The same clips and seed give the same videos on every machine. Videos are kept in the cache folder. Clips of one scene
may be in several videos, so these are not independent of each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from jostle.core.environment import cache_folder
from jostle.core.random import key_for, rng_for
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.generated_files import fill
from jostle.datasets.layouts.folder import folder as load_folder
from jostle.errors import DataError
from jostle.io.files.annotations import read_truth, write_truth
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer
from jostle.io.video.source import probe

NAME = "joined-clips"
FPS, SIZE = 25, (240, 320)
USES = 3  # of each action
DURATION_S = (60.0, 90.0)
BACKGROUND_S = (3.0, 6.0)
ACTION_S = 12.0
QUALITY = 18.0
_VERSION = 1


@dataclass(frozen=True)
class SourceClip:
    """A trimmed clip: id, file, class and length in frames at the rate of the joined videos."""

    id: str
    path: str
    label: str
    frames: int


@dataclass(frozen=True)
class ClipPiece:
    """A stretch of a clip; an action if it has a label."""

    clip: str
    path: str
    first: int
    frames: int
    label: str | None


@dataclass(frozen=True)
class JoinedVideo:
    """The recipe of one joined video."""

    id: str
    pieces: tuple[ClipPiece, ...]

    @property
    def name(self) -> str:
        return f"{self.id}.mp4"

    @property
    def key(self) -> str:
        """Everything that determines the bytes, whatever folder the clips are in."""
        parts = [(piece.clip, piece.first, piece.frames) for piece in self.pieces]
        return f"{key_for(_VERSION, repr(parts), FPS, repr(SIZE), QUALITY):016x}"

    @property
    def frames(self) -> int:
        """Length of the video."""
        return sum(piece.frames for piece in self.pieces)

    def actions(self) -> Iterator[tuple[int, int, str]]:
        """Yield the first frame, the end and the class of each action."""
        first = 0
        for piece in self.pieces:
            if piece.label is not None:
                yield first, first + piece.frames, piece.label
            first += piece.frames

    def write(self, path: Path) -> None:
        """Decode the clips and write the video."""
        with Writer(path, size=SIZE, fps=FPS, quality=QUALITY) as writer:
            for piece in self.pieces:
                with Reader(piece.path) as reader:
                    for number in range(piece.first, piece.first + piece.frames):
                        # A container may claim a little more than can be decoded: the last frame stands for it.
                        frame = reader.at(min(number / FPS, float(reader.pts[-1])))
                        if frame.shape[:2] != SIZE:
                            frame = cv2.resize(frame, SIZE[::-1], interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
                        writer.write(frame)


@dataclass(frozen=True)
class JoinedAnnotations:
    """The recipe of the annotations of joined videos."""

    subset: str
    videos: tuple[JoinedVideo, ...]

    @property
    def name(self) -> str:
        return f"{self.subset}.json"

    @property
    def key(self) -> str:
        return f"{key_for(_VERSION, *(video.key for video in self.videos)):016x}"

    def write(self, path: Path) -> None:
        """Write the actions of all videos."""
        actions = [(i, *action) for i, video in enumerate(self.videos) for action in video.actions()]
        classes = tuple(sorted({label for *_, label in actions}))
        truth = Truth(
            videos=tuple(video.id for video in self.videos),
            classes=classes,
            video=np.array([action[0] for action in actions], np.int32),
            start=np.array([action[1] / FPS for action in actions], np.float64),
            end=np.array([action[2] / FPS for action in actions], np.float64),
            label=np.array([classes.index(action[3]) for action in actions], np.int32),
            subsets=(self.subset,) * len(self.videos),
            duration=np.array([video.frames / FPS for video in self.videos], np.float64),
            fps=np.full(len(self.videos), float(FPS)),
            label_ids=tuple(range(len(classes))),
        )
        write_truth(truth, path, format="thumos14")


@dataset(NAME, subsets=(), on_disk=True, default_subset="")
def joined_clips(request: Request) -> Dataset:
    """Untrimmed videos joined from your folder of trimmed clips, with known boundaries, by a seed."""
    clips_of = load_folder(request)
    if not isinstance(clips_of.annotations[0], VideoLabels):
        raise DataError(
            f"{request.root}: joined videos need one class a clip, and the folder is annotated for {clips_of.task}"
        )
    clips = _read_clips(clips_of)
    subset = clips_of.subset
    videos = plan_videos(clips, request.seed, subset)
    key = key_for(request.seed, *(f"{clip.id} {clip.frames}" for clip in clips))
    folder = cache_folder() / NAME / f"{subset}-seed{request.seed}-{key:016x}"
    annotations = JoinedAnnotations(subset, tuple(videos))
    done = fill(folder, [annotations], verify=request.verify)
    done += fill(folder, videos, jobs=request.jobs, verify=request.verify, progress=request.progress)
    files = {video.id: folder / video.name for video in videos}
    return Dataset(
        NAME, subset, folder, (read_truth(folder / annotations.name),), files, done, source=request.root,
        notes=clips_of.notes,
    )  # fmt: skip


def _read_clips(data: Dataset) -> list[SourceClip]:
    """Return the clips that are there, sorted by id."""
    labels = data.labels
    named = {labels.videos[v]: labels.classes[c] for v, c in zip(labels.video, labels.label, strict=True)}
    clips = []
    for name, path in sorted(data.videos.items()):
        facts = probe(path, fps=data.rate_of(name))
        if facts.duration_s is None:
            raise DataError(f"{path}: its length is unknown, so it cannot be joined with others")
        clips.append(SourceClip(name, str(path), named[name], int(float(facts.duration_s) * FPS)))
    return clips


def background_classes(classes: Sequence[str], seed: int) -> frozenset[str]:
    """Return the classes that are background: a third of them, and at least one.

    >>> sorted(background_classes(["run", "jump", "sit"], 0))
    ['jump']
    """
    drawn = sorted(set(classes), key=lambda name: key_for(seed, "background", name))
    return frozenset(drawn[: max(len(drawn) // 3, 1)])


def plan_videos(clips: Sequence[SourceClip], seed: int, subset: str) -> list[JoinedVideo]:
    """Deal the clips to videos.

    Raises:
        DataError: if there are too few classes or clips for one video.
    """
    background = background_classes([clip.label for clip in clips], seed)
    actions = [clip for clip in clips if clip.label not in background]
    between = [clip for clip in clips if clip.label in background and clip.frames >= BACKGROUND_S[0] * FPS]
    if not actions or not between:
        raise DataError(
            f"{subset}: joined videos need clips of two classes or more, of which some last {BACKGROUND_S[0]:g} seconds"
        )
    action_deck = iter(_shuffled(actions, seed, subset))
    background_deck = itertools.cycle(_shuffled(between, seed, subset))
    videos: list[JoinedVideo] = []
    while True:
        name = f"{subset}_{len(videos) + 1:04d}"
        rng = rng_for(seed, NAME, name)
        target = int(rng.uniform(*DURATION_S) * FPS)
        pieces = [_cut_background(next(background_deck), rng)]
        while sum(piece.frames for piece in pieces) < target:
            clip = next(action_deck, None)
            if clip is None:
                break
            pieces.append(ClipPiece(clip.id, clip.path, 0, min(clip.frames, int(ACTION_S * FPS)), clip.label))
            pieces.append(_cut_background(next(background_deck), rng))
        if sum(piece.frames for piece in pieces) < target:
            break  # the rest of the clips is too short for a video
        videos.append(JoinedVideo(name, tuple(pieces)))
    if not videos:
        raise DataError(f"{subset}: {len(actions)} clips are too few for a video of {DURATION_S[0]:g} seconds")
    return videos


def _shuffled(clips: Sequence[SourceClip], seed: int, subset: str) -> list[SourceClip]:
    """Return the clips `USES` times, each time in another order."""
    return [
        clip
        for turn in range(USES)
        for clip in sorted(clips, key=lambda clip, turn=turn: key_for(seed, subset, turn, clip.id))  # type: ignore[misc]
    ]


def _cut_background(clip: SourceClip, rng: np.random.Generator) -> ClipPiece:
    frames = min(int(rng.uniform(*BACKGROUND_S) * FPS), clip.frames)
    first = int(rng.integers(clip.frames - frames + 1))
    return ClipPiece(clip.id, clip.path, first, frames, None)
