"""Loader of data sets with annotated segments, by a description of their layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset, Request
from jostle.datasets.layouts import search
from jostle.datasets.layouts.matching import VideoIndex
from jostle.errors import DataError
from jostle.io.files.format import recognise_format
from jostle.io.files.source import Source
from jostle.io.files.truth_table import TruthOptions


@dataclass(frozen=True)
class SegmentsLayout:
    """Layout of a data set with segments on disk."""

    name: str  # registered name
    title: str  # name in messages
    # Names of annotation files in lower case, the best first. One without a `*` must be annotations; among the others
    # those are taken that are.
    patterns: tuple[str, ...]
    spelled: Mapping[str, tuple[str, ...]]  # names of each subset in files, in lower case
    # Whether a folder is annotations, one file a class.
    is_annotations: Callable[[Path], bool] = field(default=lambda folder: False)
    # How such a folder is read, if it is of no known format.
    read_folder: Callable[[Path, TruthOptions], Truth] | None = None
    read_file: Callable[[Source, TruthOptions], Truth] | None = None  # how a file is read, if not as its format is
    core: Callable[[str], str] = str  # the part of an id that its spellings share
    # Reads the subsets of videos from another file, where annotations have none.
    subset_of: Callable[[Path], Mapping[str, str]] = field(default=lambda root: {})
    # Final conversion of the ground truth, given the root.
    finish: Callable[[Truth, Path], Truth] = field(default=lambda truth, root: truth)


Reader = Callable[[str | None], Truth]


def load(request: Request, layout: SegmentsLayout) -> Dataset:
    """Load the requested subset from a folder, with the videos that exist."""
    root = request.root
    search.check_root(root, layout.title)
    paths = [request.annotations] if request.annotations else _annotations(root, layout, request.subset)
    place, whole, truth = _read(paths, layout, request)
    truth = layout.finish(truth, root)
    videos = VideoIndex(root)
    matched = videos.match(truth.videos, subset=request.subset, known=whole.videos, core=layout.core)
    return Dataset(
        layout.name,
        request.subset,
        root,
        (truth,),
        matched.videos,
        source=place,
        missing=matched.missing,
        unlisted=matched.unlisted,
        notes=videos.notes,
    )


def _read(places: Iterable[Path], layout: SegmentsLayout, request: Request) -> tuple[Path, Truth, Truth]:
    """Read the first annotations that define the subset; return their path, all of them, and the subset."""
    refused = None
    for place in places:
        read = _reader(place, layout)
        whole = read(None)
        try:
            return place, whole, _subset(place, whole, read, layout, request)
        except DataError as error:
            if error.fault != "F29":
                raise
            refused = refused or error
    raise refused or search.no_annotations(request.root, layout.title, layout.patterns)


def _annotations(root: Path, layout: SegmentsLayout, subset: str) -> Iterator[Path]:
    """Yield annotation files in a folder, the best first."""
    files = search.small_files(root)
    for pattern in layout.patterns:
        candidates = [file for file in search.named(files, [pattern]) if "*" not in pattern or _is_truth(file)]
        if place := search.only_one(_of_subset(candidates, subset, layout), layout.title):
            yield place
    folders = [folder for folder in search.folders_of(root) if layout.is_annotations(folder)]
    if place := search.only_one(_of_subset(folders, subset, layout), layout.title):
        yield place


def _of_subset(places: list[Path], subset: str, layout: SegmentsLayout) -> list[Path]:
    """Keep paths whose name, or parent folder, does not name another subset."""
    return [place for place in places if _subset_in_name(place, layout) in ("", subset)]


def _subset_in_name(place: Path, layout: SegmentsLayout) -> str:
    names = [place.name, place.parent.name] if place.is_dir() else [place.name]
    spoken = next((word for name in names if (word := search.subset_named(name))), "")
    return next((subset for subset, words in layout.spelled.items() if spoken in words), spoken)


def _is_truth(file: Path) -> bool:
    try:
        recognise_format(Source(file), "truth")
    except DataError as error:
        if error.fault == "F28":
            return False
        raise
    return True


def _reader(place: Path, layout: SegmentsLayout) -> Reader:
    """Return a function that reads annotations; a file is parsed once."""
    source, read_folder, read_file = Source(place), layout.read_folder, layout.read_file
    if source.is_folder and read_folder is not None:
        return lambda subset: read_folder(place, TruthOptions(subset=subset))
    if read_file is not None:
        return lambda subset: read_file(source, TruthOptions(subset=subset))
    _, format, _ = recognise_format(source, "truth")
    read = format.read_truth
    assert read is not None
    return lambda subset: read(source, TruthOptions(subset=subset))


def _subset(place: Path, whole: Truth, read: Reader, layout: SegmentsLayout, request: Request) -> Truth:
    subset, words = request.subset, layout.spelled[request.subset]
    named = sorted({name for name in whole.subsets if name})
    if named:
        fitting = [name for name in named if name.casefold() in words]
        if len(named) == 1 and fitting:
            return whole
        return read(fitting[0] if fitting else subset)  # reading says which subsets there are
    if _subset_in_name(place, layout) == subset or len(layout.spelled) == 1:
        return whole
    listed = layout.subset_of(request.root)
    videos = [video for video in whole.videos if listed.get(layout.core(video), "").casefold() in words]
    if not videos:
        raise DataError(
            f"{place}: the annotations do not say which subset a video is in, and nothing in {request.root} does; "
            f"pass a file of the {subset} videos whose name says so, or one with subsets (annotations=...)",
            fault="F29",
        )
    return whole.of_videos(videos)
