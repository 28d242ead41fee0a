"""Data sets, their registry and the decorator that registers them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Protocol, Self, TypeVar

from jostle.core.formatting import join_names
from jostle.core.registry import Registry
from jostle.core.types.frame_sets import BoxSets, FrameSets
from jostle.core.types.language import MomentSet, QuestionSet
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, UnknownName
from jostle.io.files.truth_table import variant_of
from jostle.io.files.video_ids import quote_name
from jostle.io.video.source import kind_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class FileCounts:
    """Counts of the generated files of a data set."""

    made: int = 0  # files that were missing
    kept: int = 0  # files that existed and are intact
    rebuilt: int = 0  # files that were damaged, truncated, or of another recipe

    def __add__(self, other: FileCounts) -> FileCounts:
        return FileCounts(self.made + other.made, self.kept + other.kept, self.rebuilt + other.rebuilt)

    def __str__(self) -> str:
        return f"{self.made} files made, {self.kept} kept, {self.rebuilt} rebuilt"


class Annotations(Protocol):
    """Annotations of the videos of a data set, such as `Truth`, `VideoLabels` or a type of a plugin."""

    task: ClassVar[str]  # that they are the truth of
    holds: ClassVar[str]  # what they are, for messages
    unit: ClassVar[str]  # what is counted

    @property
    def videos(self) -> Sequence[str]: ...
    def of_videos(self, names: Collection[str], /) -> Self: ...
    def __len__(self) -> int: ...


Kind = TypeVar("Kind", bound=Annotations)


@dataclass(frozen=True)
class Dataset:
    """One subset of a data set: its annotations, and the paths of its videos.

    Annotations are complete even if a copy of the videos is not: `missing` lists what it lacks, and `at_hand` returns
    the usable part.

    Attributes:
        name: as `jostle names datasets` lists it.
        subset: name of the subset.
        folder: folder of its annotations and lists.
        annotations: annotations of one kind or several; the first determines the task.
        videos: the file of each video that is there, or its folder of images, by its id, in the order of annotation.
        files: counts of generated files.
        source: the file or folder that the annotations were read from, if they are the user's own.
        missing: ids that are annotated and have no file; of sets of frames and of boxes, the frames.
        unlisted: video files without annotations.
        notes: remarks about the copy, one line each.
        fps: frame rate of folders of images, if neither they nor the annotations state it.
    """

    name: str
    subset: str
    folder: Path
    annotations: tuple[Annotations, ...]
    videos: Mapping[str, Path]
    files: FileCounts = FileCounts()
    source: Path | None = None
    missing: tuple[str, ...] = ()
    unlisted: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    fps: Fraction | None = None

    def __post_init__(self) -> None:
        paths = {name: Path(path) for name, path in self.videos.items() if isinstance(path, str)}
        if paths:  # of a plugin
            object.__setattr__(self, "videos", {**self.videos, **paths})

    @property
    def task(self) -> str:
        """Task of the set: that of its first annotations."""
        return self.annotations[0].task

    @property
    def truth(self) -> Truth:
        """The annotated segments; raises BadValue if there are none."""
        return self.annotated(Truth)

    @property
    def labels(self) -> VideoLabels:
        """The classes of whole videos; raises BadValue if there are none."""
        return self.annotated(VideoLabels)

    @property
    def frames(self) -> FrameSets:
        """The sets of similar frames; raises BadValue if there are none."""
        return self.annotated(FrameSets)

    @property
    def objects(self) -> BoxSets:
        """The boxes of objects in similar frames; raises BadValue if there are none."""
        return self.annotated(BoxSets)

    @property
    def questions(self) -> QuestionSet:
        """The questions with options; raises BadValue if there are none."""
        return self.annotated(QuestionSet)

    @property
    def moments(self) -> MomentSet:
        """The sentences and their windows; raises BadValue if there are none."""
        return self.annotated(MomentSet)

    @property
    def variant(self) -> str | None:
        """Known variant of the ground truth, or None."""
        first = self.annotations[0]
        return variant_of(first) if isinstance(first, Truth) else None

    def rate_of(self, name: str) -> Fraction | None:
        """Return the frame rate of a folder of images, or of another video that does not state it, else None."""
        path = self.videos.get(name)
        if path is None or kind_of(path).is_coded:
            return None
        rates = [part.fps_of(name) for part in self.annotations if isinstance(part, Truth)]
        return next((rate for rate in rates if rate is not None), self.fps)

    def at_hand(self) -> Dataset:
        """Return the data set restricted to videos that exist."""
        if not self.missing:
            return self
        left = tuple(_without(part, self.missing, self.videos) for part in self.annotations)
        return replace(self, annotations=left, missing=())

    def annotated(self, kind: type[Kind]) -> Kind:
        """Return the annotations of a type; raises BadValue if there are none."""
        annotations = next((part for part in self.annotations if isinstance(part, kind)), None)
        if annotations is None:
            held = " and ".join(part.holds for part in self.annotations)
            raise BadValue(f"{self.name} is annotated with {held}, not with {kind.holds}; it is for {self.task}")
        return annotations

    def __str__(self) -> str:
        whole = self.annotations[0]
        listed, unit = len(whole.videos), "videos"
        if isinstance(whole, FrameSets | BoxSets):
            listed, unit = len(whole.frames), "frames"
        gaps = []
        if self.missing:
            gaps.append(f"{len(self.missing)} missing: {join_names(map(quote_name, self.missing))}")
        if self.unlisted:
            unlisted = join_names(quote_name(path.name) for path in self.unlisted)
            gaps.append(f"{len(self.unlisted)} files without annotations: {unlisted}")
        summary = f"{self.name} {self.subset}: {listed - len(self.missing)} of {listed} {unit}"
        return summary + (f" ({'; '.join(gaps)})" if gaps else "")

    def __repr__(self) -> str:
        first = self.annotations[0]
        return f"Dataset({self.name} {self.subset}: {len(self.videos)} videos, {len(first)} {first.unit})"


def _without(part: Annotations, missing: tuple[str, ...], videos: Mapping[str, Path]) -> Annotations:
    if isinstance(part, FrameSets | BoxSets):
        return part.without(missing)
    return part.of_videos(videos.keys())


@dataclass(frozen=True)
class Request:
    """Arguments for loading a data set.

    Attributes:
        subset: one of its subsets.
        root: the folder that holds data sets, or the folder of the one that is the user's own.
        seed: seed of a generated data set.
        jobs: number of worker processes.
        verify: read every file and compare its hash, instead of only those whose size or time has changed.
        progress: called with (files ready, files in all).
        annotations: the file or folder to read annotations from, instead of searching for one.
        first: number of videos to generate; the others count as missing.
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
        if self.first is not None and self.first < 0:
            raise BadValue(f"first must be at least 0, got {self.first}")
        if self.jobs < 1:
            raise BadValue(f"jobs must be at least 1, got {self.jobs}")
        if self.seed < 0:
            raise BadValue(f"the seed of a data set must not be negative, got {self.seed}")


@dataclass(frozen=True)
class DatasetKind:
    """Registered data set: its subsets, and the function that loads one of them."""

    name: str
    subsets: tuple[str, ...]  # names of the subsets; empty if they depend on the folder
    load: Callable[[Request], Dataset]
    task: str = "detection"  # task of the set; empty if it depends on the folder
    on_disk: bool = False  # whether the videos are the user's own in a folder; otherwise they are generated
    default_subset: str = "test"  # default subset; empty if it depends on the folder
    # Number of videos of a subset in its publication, to detect incomplete copies.
    videos: Mapping[str, int] = field(default_factory=dict)
    classes: int = 0  # number of classes; 0 if it is open

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return " ".join((self.load.__doc__ or "").strip().split("\n\n")[0].split())

    def check_subset(self, subset: str) -> None:
        """Raise if there is no subset of this name."""
        if self.subsets and subset not in self.subsets:
            raise UnknownName(f"subset of {self.name}", subset, self.subsets)


Loader = TypeVar("Loader", bound=Callable[[Request], Dataset])

datasets: Registry[DatasetKind] = Registry("data set", "jostle.datasets.puppets", "jostle.datasets.layouts")


def dataset(
    name: str,
    *,
    subsets: tuple[str, ...],
    task: str = "detection",
    on_disk: bool = False,
    default_subset: str = "test",
    videos: Mapping[str, int] | None = None,
    classes: int = 0,
) -> Callable[[Loader], Loader]:
    """Register a function that loads a data set; see `DatasetKind`."""

    def register(load: Loader) -> Loader:
        datasets.add(name, DatasetKind(name, subsets, load, task, on_disk, default_subset, videos or {}, classes))
        return load

    return register
