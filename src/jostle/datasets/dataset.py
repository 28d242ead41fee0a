"""A data set by name: one function that gives it, one decorator, one shelf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeVar

from jostle.core.registry import Registry
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.frame_sets import BoxSets, FrameSets
from jostle.errors import BadValue, UnknownName
from jostle.io.files.truth_table import variant_of
from jostle.io.files.video_ids import listing, shown

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Files:
    """What became of the files of a data set.

    Attributes:
        made: files that were not there.
        kept: files that were there and are whole.
        rebuilt: files that were there but damaged, cut off, or of another recipe.
    """

    made: int = 0
    kept: int = 0
    rebuilt: int = 0

    def __add__(self, other: Files) -> Files:
        return Files(self.made + other.made, self.kept + other.kept, self.rebuilt + other.rebuilt)

    def __str__(self) -> str:
        return f"{self.made} files made, {self.kept} kept, {self.rebuilt} rebuilt"


Annotations = Truth | VideoLabels | FrameSets | BoxSets
Task = Literal["detection", "recognition", "frames", "objects"]
_TASKS: dict[type, Task] = {
    Truth: "detection",
    VideoLabels: "recognition",
    FrameSets: "frames",
    BoxSets: "objects",
}
_SAID = {
    Truth: "segments",
    VideoLabels: "classes of whole videos",
    FrameSets: "sets of frames",
    BoxSets: "boxes of objects",
}
_UNITS = {Truth: "instances", VideoLabels: "labels", FrameSets: "anchors", BoxSets: "anchors"}
Kind = TypeVar("Kind", Truth, VideoLabels, FrameSets, BoxSets)


@dataclass(frozen=True)
class Dataset:
    """One subset of a data set: what is annotated, and where its videos lie.

    Annotations are whole even where a copy of the videos is not: `missing` says what it lacks, and `at_hand` gives
    the part that can be used.

    Attributes:
        name: as `jostle names datasets` lists it.
        subset: which part of it.
        folder: where its annotations and lists lie.
        annotations: what is annotated, of one kind or several; the first says what the set is for.
        videos: the file of each video that is there, or its folder of images, by its id, in the order of annotation.
        files: how many files had to be made for it.
        source: the file or folder that the annotations were read from, if they are the user's own.
        missing: ids that are annotated and have no file; of sets of frames and of boxes, the frames.
        unlisted: video files that nobody annotated.
        notes: what else is to be known about the copy, a line each.
        fps: the rate of folders of images, where neither they nor the annotations say it.
    """

    name: str
    subset: str
    folder: Path
    annotations: tuple[Annotations, ...]
    videos: Mapping[str, Path]
    files: Files = Files()
    source: Path | None = None
    missing: tuple[str, ...] = ()
    unlisted: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    fps: Fraction | None = None

    @property
    def task(self) -> Task:
        """What the set is for: `detection`, `recognition`, `frames` or `objects`."""
        return _TASKS[type(self.annotations[0])]

    @property
    def truth(self) -> Truth:
        """The annotated segments; raises BadValue if there are none."""
        return self._annotated(Truth)

    @property
    def labels(self) -> VideoLabels:
        """The classes of whole videos; raises BadValue if there are none."""
        return self._annotated(VideoLabels)

    @property
    def frames(self) -> FrameSets:
        """The sets of frames that look alike; raises BadValue if there are none."""
        return self._annotated(FrameSets)

    @property
    def objects(self) -> BoxSets:
        """The boxes of objects in frames that look alike; raises BadValue if there are none."""
        return self._annotated(BoxSets)

    @property
    def variant(self) -> str | None:
        """The known variant of a ground truth that goes by one name and is not one, or None."""
        return variant_of(self.truth) if self.task == "detection" else None

    def rate_of(self, name: str) -> Fraction | None:
        """The rate at which a folder of images is shown, if it does not say so itself; None for a video file."""
        path = self.videos.get(name)
        if path is None or not path.is_dir():
            return None
        said = [part.fps_of(name) for part in self.annotations if isinstance(part, Truth)]
        return next((rate for rate in said if rate is not None), self.fps)

    def at_hand(self) -> Dataset:
        """The same, with nothing but what has its file."""
        if not self.missing:
            return self
        left = tuple(_without(part, self.missing, self.videos) for part in self.annotations)
        return replace(self, annotations=left, missing=())

    def _annotated(self, kind: type[Kind]) -> Kind:
        found = next((part for part in self.annotations if isinstance(part, kind)), None)
        if found is None:
            held = " and ".join(_SAID[type(part)] for part in self.annotations)
            raise BadValue(f"{self.name} is annotated with {held}, not with {_SAID[kind]}; it is for {self.task}")
        return found

    def __str__(self) -> str:
        whole = self.annotations[0]
        listed, unit = len(whole.videos), "videos"
        if isinstance(whole, FrameSets | BoxSets):
            listed, unit = len(whole.frames), "frames"
        gaps = []
        if self.missing:
            gaps.append(f"{len(self.missing)} missing: {listing(map(shown, self.missing))}")
        if self.unlisted:
            gaps.append(f"{len(self.unlisted)} files nobody annotated: {listing(shown(p.name) for p in self.unlisted)}")
        said = f"{self.name} {self.subset}: {listed - len(self.missing)} of {listed} {unit}"
        return said + (f" ({'; '.join(gaps)})" if gaps else "")

    def __repr__(self) -> str:
        first = self.annotations[0]
        return f"Dataset({self.name} {self.subset}: {len(self.videos)} videos, {len(first)} {_UNITS[type(first)]})"


def _without(part: Annotations, missing: tuple[str, ...], videos: Mapping[str, Path]) -> Annotations:
    if isinstance(part, FrameSets | BoxSets):
        return part.without(missing)
    return part.of_videos(videos)


@dataclass(frozen=True)
class Request:
    """What is asked of a data set.

    Attributes:
        subset: one of its subsets.
        root: the folder that holds data sets, or the folder of the one that is the user's own.
        seed: another seed gives other videos.
        jobs: processes that may work at once.
        verify: read every file and compare its hash, instead of only those whose size or time has changed.
        progress: called with (files ready, files in all).
        annotations: the file or folder to read annotations from, instead of looking for one.
        first: of a set that is made, how many videos are to be; the others count as missing.
    """

    subset: str
    root: Path
    seed: int = 0
    jobs: int = 1
    verify: bool = False
    progress: Progress | None = None
    annotations: Path | None = None
    first: int | None = None

    def __post_init__(self) -> None:
        if self.first is not None and self.first < 1:
            raise BadValue(f"at least one video must be made, got {self.first}")
        if self.jobs < 1:
            raise BadValue(f"jobs must be at least 1, got {self.jobs}")
        if self.seed < 0:
            raise BadValue(f"the seed of a data set must not be negative, got {self.seed}")


@dataclass(frozen=True)
class DatasetKind:
    """An entry of the shelf: the subsets there are, and the function that gives one of them.

    Attributes:
        subsets: their names; none if each folder has its own.
        task: what the set is for; empty if each folder decides it.
        on_disk: whether the videos are the user's own and lie in a folder; otherwise they are made.
        usual: the subset that results are given for; empty if each folder decides it.
        videos: how many videos its publication counts in a subset, where a copy could pass for all of it.
        classes: and how many classes; 0 if that is open.
    """

    name: str
    subsets: tuple[str, ...]
    load: Callable[[Request], Dataset]
    task: Task | Literal[""] = "detection"
    on_disk: bool = False
    usual: str = "test"
    videos: Mapping[str, int] = field(default_factory=dict)
    classes: int = 0

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return " ".join((self.load.__doc__ or "").strip().split("\n\n")[0].split())

    def check_subset(self, subset: str) -> None:
        """Raise unless there is a subset of this name."""
        if self.subsets and subset not in self.subsets:
            raise UnknownName(f"subset of {self.name}", subset, self.subsets)


Loader = TypeVar("Loader", bound=Callable[[Request], Dataset])

datasets: Registry[DatasetKind] = Registry("data set", "jostle.datasets.puppets", "jostle.datasets.layouts")


def dataset(
    name: str,
    *,
    subsets: tuple[str, ...],
    task: Task | Literal[""] = "detection",
    on_disk: bool = False,
    usual: str = "test",
    videos: Mapping[str, int] | None = None,
    classes: int = 0,
) -> Callable[[Loader], Loader]:
    """Put a function that gives a data set on the shelf; see `DatasetKind`."""

    def put(load: Loader) -> Loader:
        datasets.add(name, DatasetKind(name, subsets, load, task, on_disk, usual, videos or {}, classes))
        return load

    return put
