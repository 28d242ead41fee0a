"""Data sets with one class a clip: a list of clips is found and read, or the folders are the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request
from jostle.datasets.layouts import tree
from jostle.datasets.layouts.classes import in_order, only_classes, read_names
from jostle.datasets.layouts.matching import Videos
from jostle.errors import DataError
from jostle.io.files.format import recognised
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.tabular import csv_rows

CLASS_LISTS = ("classind.txt", "class*.txt", "*label_map*.txt", "*labels.csv", "*classnames.json", "*labels.json")


@dataclass(frozen=True)
class Clips:
    """How a data set of clips lies on disk.

    Attributes:
        name: as the shelf has it.
        title: as messages say it.
        patterns: names of lists in lower case, the best first; `{s}` stands for any word for the subset.
        read: how such a list is read, given its path and the subset.
        class_lists: names of lists of classes in lower case, the best first.
        classes: the classes that are kept, in their order; all if None.
        by_folder: whether folders named after classes do, where there is no list.
        core: the part of an id that its spellings share.
        count: how many classes the data set has; 0 if that is open.
        all_listed: whether a video that is not in the list is worth a word; not where all subsets share a folder.
    """

    name: str
    title: str
    patterns: tuple[str, ...]
    read: Callable[[Path, str], VideoLabels] = field(default=lambda path, subset: read_clips(path, subset))
    class_lists: tuple[str, ...] = CLASS_LISTS
    classes: Callable[[], Sequence[str]] | None = None
    by_folder: bool = True
    core: Callable[[str], str] = str
    count: int = 0
    all_listed: bool = True


def load(request: Request, layout: Clips) -> Dataset:
    """The subset asked for, as a list or the folders of a data set give it."""
    root = request.root
    tree.check_root(root, layout.title)
    files = tree.small_files(root)
    place = request.annotations or listed(files, layout, request.subset)
    if place is None and not layout.by_folder:
        raise tree.no_annotations(root, layout.title, patterns_of(layout, request.subset, shortest=True))
    videos = Videos(root)
    labels = layout.read(place, request.subset) if place else from_folders(videos, request.subset)
    if labels is None:
        looked_for = (*patterns_of(layout, request.subset, shortest=True), "folders named after classes")
        raise tree.no_annotations(root, layout.title, looked_for)
    return finished(request, layout, videos, labels, place)


def read_clips(path: Path, subset: str) -> VideoLabels:
    """The labels in a list of any known format; where it names subsets, those of the subset only."""
    source = Source(path)
    _, format, _ = recognised(source, "labels")
    assert format.read_labels is not None
    words = tree.SUBSET_WORDS.get(subset, (subset,))
    named = subsets_of(source)
    fitting = next((name for name in named if name.casefold() in words), subset)
    return format.read_labels(source, fitting if named else None)


def subsets_of(source: Source) -> tuple[str, ...]:
    """The subsets that a list of labels names, as it spells them."""
    if source.is_json:
        entries = source.plain_document.get("database")
        found = [entry.get("subset") for entry in entries.values() if isinstance(entry, dict)] if entries else []
    else:
        place = source.header.index("split") if "split" in source.header else None
        found = [] if place is None else [fields[place] for _, fields in csv_rows(source)]
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str) and name))


def finished(
    request: Request,
    layout: Clips,
    videos: Videos,
    labels: VideoLabels,
    place: Path | None,
    known: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> Dataset:
    """The data set: classes in order, and the file of each clip.

    Args:
        place: where the labels were read, or None for folders.
        known: ids of the other subsets.
        names: the classes in their order, where they are known; otherwise a list of them is looked for.
    """
    root, where = request.root, place or request.root
    if names is None and (labels.numbered or layout.classes is None):
        names = class_names([file for file in tree.small_files(root) if file != place], layout)
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
        subset=tree.subset_named(request.subset) or request.subset,
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


def patterns_of(layout: Clips, subset: str, *, shortest: bool = False) -> tuple[str, ...]:
    """The patterns of a subset, one for each word for it, or for the shortest only."""
    words = tree.SUBSET_WORDS.get(subset, (subset,))
    words = (min(words, key=len),) if shortest else words
    return tuple(dict.fromkeys(pattern.replace("{s}", word) for pattern in layout.patterns for word in words))


def listed(files: Sequence[Path], layout: Clips, subset: str) -> Path | None:
    """The list of a subset, or None; of several that are as good, nothing is guessed."""
    for pattern in patterns_of(layout, subset):
        found = [file for file in tree.named(files, [pattern]) if tree.subset_named(file.name) in ("", subset)]
        if place := tree.only_one(found, layout.title):
            return place
    return None


def class_names(files: Sequence[Path], layout: Clips) -> tuple[str, ...] | None:
    """The classes that a list in the folder gives, in their order, or None if there is no such list."""
    found = tree.named(files, layout.class_lists)
    return read_names(found[0]) if found else None


def from_folders(videos: Videos, subset: str) -> VideoLabels | None:
    """The class of each clip by the folder it lies in, or None if no video lies in one.

    If some folder is named after a subset, only clips below that of the subset asked for count.
    """
    root = videos.root
    parts = {path: tree.subset_of_path(path, root) for path in videos.paths}
    there = sorted({part for part in parts.values() if part})
    if there and subset not in there:
        raise DataError(
            f"{root}: no videos of the subset {subset!r}; there are folders of {', '.join(there)}", fault="F29"
        )
    made, count = LabelList(root), 0
    for path, part in parts.items():
        if path.parent != root and part == (subset if there else "") and not tree.is_plain_folder(path.parent.name):
            made.add(path.relative_to(root).as_posix(), [path.parent.name])
            count += 1
    return made.finish(are_paths=True) if count else None
