"""Loader of data sets with one class a clip, from a list of clips or from folders named after classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request
from jostle.datasets.layouts import search
from jostle.datasets.layouts.classes import in_order, only_classes, read_names
from jostle.datasets.layouts.matching import VideoIndex
from jostle.errors import DataError
from jostle.io.files.format import recognise_format
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows

CLASS_LISTS = ("classind.txt", "class*.txt", "*label_map*.txt", "*labels.csv", "*classnames.json", "*labels.json")


@dataclass(frozen=True)
class ClipsLayout:
    """Layout of a data set of clips on disk."""

    name: str  # registered name
    title: str  # name in messages
    patterns: tuple[str, ...]  # names of lists in lower case, the best first; `{s}` stands for any word for the subset
    # How such a list is read, given its path and the subset.
    read: Callable[[Path, str], VideoLabels] = field(default=lambda path, subset: read_clips(path, subset))
    class_lists: tuple[str, ...] = CLASS_LISTS  # names of lists of classes in lower case, the best first
    classes: Callable[[], Sequence[str]] | None = None  # the classes to keep, in their order; all if None
    by_folder: bool = True  # whether folders named after classes replace a missing list
    core: Callable[[str], str] = str  # the part of an id that its spellings share
    count: int = 0  # number of classes; 0 if it is open
    all_listed: bool = True  # whether to report videos that are not in the list; not if all subsets share a folder


def load(request: Request, layout: ClipsLayout) -> Dataset:
    """Load the requested subset from a list or from the folders of a data set."""
    root = request.root
    search.check_root(root, layout.title)
    files = search.small_files(root)
    place = request.annotations or find_list(files, layout, request.subset)
    if place is None and not layout.by_folder:
        raise search.no_annotations(root, layout.title, subset_patterns(layout, request.subset, shortest=True))
    videos = VideoIndex(root)
    labels = layout.read(place, request.subset) if place else from_folders(videos, request.subset)
    if labels is None:
        expected = (*subset_patterns(layout, request.subset, shortest=True), "folders named after classes")
        raise search.no_annotations(root, layout.title, expected)
    return build_dataset(request, layout, videos, labels, place)


def read_clips(path: Path, subset: str) -> VideoLabels:
    """Read labels from a list of any known format, restricted to the subset if it names subsets."""
    source = Source(path)
    _, format, _ = recognise_format(source, "labels")
    assert format.read_labels is not None
    words = search.SUBSET_WORDS.get(subset, (subset,))
    named = read_subsets(source)
    fitting = next((name for name in named if name.casefold() in words), subset)
    return format.read_labels(source, fitting if named else None)


def read_subsets(source: Source) -> tuple[str, ...]:
    """Return the subsets that a list of labels names, as it spells them."""
    if source.is_json:
        entries = source.plain_document.get("database")
        names = [entry.get("subset") for entry in entries.values() if isinstance(entry, dict)] if entries else []
    else:
        place = source.header.index("split") if "split" in source.header else None
        names = [] if place is None else [fields[place] for _, fields in read_csv_rows(source)]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def build_dataset(
    request: Request,
    layout: ClipsLayout,
    videos: VideoIndex,
    labels: VideoLabels,
    place: Path | None,
    known: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> Dataset:
    """Build the data set: classes in order, and the file of each clip.

    Args:
        place: path of the labels, or None for folders.
        known: ids of the other subsets.
        names: the classes in their order, where they are known; otherwise a list of them is searched for.
    """
    root, where = request.root, place or request.root
    if names is None and (labels.numbered or layout.classes is None):
        names = class_names([file for file in search.small_files(root) if file != place], layout)
    whole = labels
    if labels.numbered or layout.classes is None:
        labels = in_order(labels, names, where)
    if layout.classes is not None:
        labels = only_classes(labels, layout.classes(), where)
    notes = videos.notes
    if names is None and layout.classes is None and len(labels.classes) < layout.count:
        few = f"{where} names {len(labels.classes)} of {layout.count} classes, and they are numbered among themselves"
        notes = (*notes, f"{few}; put the list of all classes beside it (classes.txt)")
    matched = videos.match(
        labels.videos,
        paths=labels.paths,
        images=len(labels.frames) > 0,
        subset=search.subset_named(request.subset) or request.subset,
        known=(*known, *whole.videos) if layout.all_listed else None,
        core=layout.core,
    )
    return Dataset(
        layout.name,
        request.subset,
        root,
        (labels,),
        matched.videos,
        source=place or root,
        missing=matched.missing,
        unlisted=matched.unlisted,
        notes=notes,
    )


def subset_patterns(layout: ClipsLayout, subset: str, *, shortest: bool = False) -> tuple[str, ...]:
    """Return the patterns of a subset, one for each synonym, or for the shortest only."""
    words = search.SUBSET_WORDS.get(subset, (subset,))
    words = (min(words, key=len),) if shortest else words
    return tuple(dict.fromkeys(pattern.replace("{s}", word) for pattern in layout.patterns for word in words))


def find_list(files: Sequence[Path], layout: ClipsLayout, subset: str) -> Path | None:
    """Find the list of a subset, or None; several equally good ones are an error."""
    for pattern in subset_patterns(layout, subset):
        candidates = [file for file in search.named(files, [pattern]) if search.subset_named(file.name) in ("", subset)]
        if place := search.only_one(candidates, layout.title):
            return place
    return None


def class_names(files: Sequence[Path], layout: ClipsLayout) -> tuple[str, ...] | None:
    """Read the class list in the folder, or return None if there is none."""
    lists = search.named(files, layout.class_lists)
    return read_names(lists[0]) if lists else None


def from_folders(videos: VideoIndex, subset: str) -> VideoLabels | None:
    """Label each clip by its folder; None if no video lies in a folder.

    If some folder is named after a subset, only clips below that of the requested subset count.
    """
    root = videos.root
    parts = {path: search.subset_of_path(path, root) for path in videos.paths}
    subsets = sorted({part for part in parts.values() if part})
    if subsets and subset not in subsets:
        raise DataError(
            f"{root}: no videos of the subset {subset!r}; there are folders of {', '.join(subsets)}", fault="F29"
        )
    labels, count = LabelList(root), 0
    for path, part in parts.items():
        if path.parent != root and part == (subset if subsets else "") and not search.is_plain_folder(path.parent.name):
            labels.add(path.relative_to(root).as_posix(), [path.parent.name])
            count += 1
    return labels.finish(are_paths=True) if count else None
