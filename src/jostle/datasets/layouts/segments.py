"""Data sets with annotated segments: one table says how a set's files are called, one function reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset, Request
from jostle.datasets.layouts import tree
from jostle.datasets.layouts.matching import Videos
from jostle.errors import DataError
from jostle.io.files.format import recognised
from jostle.io.files.source import Source
from jostle.io.files.truth_table import Wanted


@dataclass(frozen=True)
class Segments:
    """How a data set with segments lies on disk.

    Attributes:
        name: as the shelf has it.
        title: as messages say it.
        patterns: names of annotation files in lower case, the best first. One without a `*` must be annotations;
            among the others those are taken that are.
        spelled: what files call each subset, in lower case.
        is_annotations: whether a folder is annotations, one file a class.
        read_folder: how such a folder is read, if it is of no known format.
        read_file: how a file is read, if not as its format is.
        core: the part of an id that its spellings share.
        subset_of: reads the subsets of videos from another file, where annotations have none.
        finish: what is done to the ground truth in the end, given the root.
    """

    name: str
    title: str
    patterns: tuple[str, ...]
    spelled: Mapping[str, tuple[str, ...]]
    is_annotations: Callable[[Path], bool] = field(default=lambda folder: False)
    read_folder: Callable[[Path, Wanted], Truth] | None = None
    read_file: Callable[[Source, Wanted], Truth] | None = None
    core: Callable[[str], str] = str
    subset_of: Callable[[Path], Mapping[str, str]] = field(default=lambda root: {})
    finish: Callable[[Truth, Path], Truth] = field(default=lambda truth, root: truth)


Reader = Callable[[str | None], Truth]


def load(request: Request, layout: Segments) -> Dataset:
    """The subset asked for, as it is annotated in a folder, and the videos that are there."""
    root = request.root
    tree.check_root(root, layout.title)
    found = [request.annotations] if request.annotations else _annotations(root, layout, request.subset)
    place, whole, truth = _read(found, layout, request)
    truth = layout.finish(truth, root)
    videos = Videos(root)
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


def _read(places: Iterable[Path], layout: Segments, request: Request) -> tuple[Path, Truth, Truth]:
    """The first annotations that tell which videos are in the subset: where, everything, and what is in the subset."""
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
    raise refused or tree.no_annotations(request.root, layout.title, layout.patterns)


def _annotations(root: Path, layout: Segments, subset: str) -> Iterator[Path]:
    """Annotations in a folder, the best first."""
    files = tree.small_files(root)
    for pattern in layout.patterns:
        found = [file for file in tree.named(files, [pattern]) if "*" not in pattern or _is_truth(file)]
        if place := tree.only_one(_of_subset(found, subset, layout), layout.title):
            yield place
    folders = [folder for folder in tree.folders_of(root) if layout.is_annotations(folder)]
    if place := tree.only_one(_of_subset(folders, subset, layout), layout.title):
        yield place


def _of_subset(places: list[Path], subset: str, layout: Segments) -> list[Path]:
    """Those whose name, or that of the folder around, does not speak of another subset."""
    return [place for place in places if _spoken(place, layout) in ("", subset)]


def _spoken(place: Path, layout: Segments) -> str:
    names = [place.name, place.parent.name] if place.is_dir() else [place.name]
    spoken = next((found for name in names if (found := tree.subset_named(name))), "")
    return next((subset for subset, words in layout.spelled.items() if spoken in words), spoken)


def _is_truth(file: Path) -> bool:
    try:
        recognised(Source(file), "truth")
    except DataError as error:
        if error.fault == "F28":
            return False
        raise
    return True


def _reader(place: Path, layout: Segments) -> Reader:
    """Reads annotations; a file is parsed once."""
    source, read_folder, read_file = Source(place), layout.read_folder, layout.read_file
    if source.is_folder and read_folder is not None:
        return lambda subset: read_folder(place, Wanted(subset=subset))
    if read_file is not None:
        return lambda subset: read_file(source, Wanted(subset=subset))
    _, format, _ = recognised(source, "truth")
    read = format.read_truth
    assert read is not None
    return lambda subset: read(source, Wanted(subset=subset))


def _subset(place: Path, whole: Truth, read: Reader, layout: Segments, request: Request) -> Truth:
    subset, words = request.subset, layout.spelled[request.subset]
    named = sorted({name for name in whole.subsets if name})
    if named:
        fitting = [name for name in named if name.casefold() in words]
        if len(named) == 1 and fitting:
            return whole
        return read(fitting[0] if fitting else subset)  # reading says which subsets there are
    if _spoken(place, layout) == subset or len(layout.spelled) == 1:
        return whole
    listed = layout.subset_of(request.root)
    wanted = [video for video in whole.videos if listed.get(layout.core(video), "").casefold() in words]
    if not wanted:
        raise DataError(
            f"{place}: the annotations do not say which subset a video is in, and nothing in {request.root} does; "
            f"give a file of the {subset} videos whose name says so, or one with subsets (annotations=...)",
            fault="F29",
        )
    return whole.of_videos(wanted)
