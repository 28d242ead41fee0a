"""Data set from a user's own folder: videos, and annotations in any known format.

The first of these that exists is used:

- `pmsets.json` and `labels.json`: sets of frames, see `similar_frames`;
- one file of annotations in any format jostle reads: segments make the folder a set for detection, classes of whole
  videos one for recognition;
- questions with options, or sentences with windows, in any layout of `jostle.io.formats.questions` and `.moments`, such
  as rows with `video question options answer`;
- a table of classes: CSV or JSON lines with `file_name` (or `video`, `video_id`, `path`, `filename`) and `label` (or
  `class`, `category`), perhaps `split` (or `subset`); or JSON `{video: class}`;
- one such file for each subset, `train.csv` and `test.csv`;
- no file at all: folders named after classes, perhaps below folders named after subsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from jostle.core.formatting import describe
from jostle.core.types.language import MomentSet, QuestionSet
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Annotations, Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.clips import ClipsLayout, build_dataset, from_folders, read_subsets
from jostle.datasets.layouts.matching import VideoIndex
from jostle.datasets.layouts.similar_frames import SETS, load_frames
from jostle.errors import DataError
from jostle.io.files.format import recognise_format
from jostle.io.files.label_list import LabelList
from jostle.io.files.ledger import MANIFEST, FileLine
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows
from jostle.io.files.text import parse_json
from jostle.io.files.truth_table import TruthOptions
from jostle.io.files.video_ids import normalize_id
from jostle.io.formats.moments import looks_like_moments, read_moments
from jostle.io.formats.questions import looks_like_questions, read_questions

TITLE = "your own videos"
EVERYTHING = "all"
_VIDEO = ("file_name", "filename", "path", "video", "video_id", "video_name", "id")
_LABEL = ("label", "class", "category", "action", "class_name")
_SUBSET = ("split", "subset")
_DEPTH = 1  # depth of folders below the root to search for annotations
_NO_ANNOTATIONS = (
    *("class*.txt", "*label_map*", "readme*", "licen?e*", "requirements*"),
    *("jostle*.json", "log.jsonl", "journal.jsonl", "failures.jsonl"),  # written by `build`, `train` and `run`
)
_MANIFEST_KEYS = {field.name for field in fields(FileLine)}
_LAYOUT = ClipsLayout(name="folder", title=TITLE, patterns=(), class_lists=("class*.txt", "*label_map*.txt"))


@dataclass(frozen=True)
class _AnnotationFile:
    """A readable annotation file: its subsets, and a function that reads one, or all if None."""

    path: Path
    subsets: tuple[str, ...]
    read: Callable[[str | None], Annotations]


@dataset("folder", subsets=(), task="", on_disk=True, default_subset="")
def folder(request: Request) -> Dataset:
    """Your own folder: videos with a JSON or CSV of annotations, or in folders named after classes; no code needed."""
    root = request.root
    search.check_root(root, TITLE)
    files = search.small_files(root, _DEPTH)
    if request.annotations is None and search.named(files, SETS):
        return load_frames(_for(request, EVERYTHING), "folder", TITLE)
    if request.annotations is not None:
        own = [_require_annotations(request.annotations)]
    else:
        known = {*search.named(files, _NO_ANNOTATIONS), *filter(_is_manifest, search.named(files, [MANIFEST]))}
        own = [annotations for file in files if file not in known and (annotations := _open_annotations(file))]
    if not own:
        return _by_folders(request)
    chosen, subset_name, spelled = _choose(request, own)
    annotated = chosen.read(subset_name)
    videos = VideoIndex(root)
    resolved = _for(request, spelled)
    if isinstance(annotated, VideoLabels):
        return build_dataset(resolved, _LAYOUT, videos, annotated, chosen.path, _ids(chosen.read(None)))
    assert isinstance(annotated, Truth | QuestionSet | MomentSet)
    subset = search.subset_named(spelled)
    matched = videos.match(annotated.videos, subset=subset, known=_ids(chosen.read(None)))
    return Dataset(
        "folder",
        spelled,
        root,
        (annotated,),
        matched.videos,
        source=chosen.path,
        missing=matched.missing,
        unlisted=matched.unlisted,
        notes=videos.notes,
    )


def _is_manifest(path: Path) -> bool:
    """Return whether a file lists files that jostle generated."""
    first = next((line for line in Source(path).lines if line.strip()), "{}")
    return set(parse_json(first, path)) == _MANIFEST_KEYS


def _for(request: Request, subset: str) -> Request:
    return Request(subset, request.root, annotations=request.annotations)


def _ids(annotated: Annotations) -> list[str]:
    return list(annotated.videos)


def _by_folders(request: Request) -> Dataset:
    videos = VideoIndex(request.root)
    there = sorted({part for path in videos.paths if (part := search.subset_of_path(path, request.root))})
    subset = _pick(request, there, request.root) if there else _whole_subset(request, request.root)
    labels = from_folders(videos, subset)
    if labels is None:
        raise search.no_annotations(request.root, TITLE, ("one JSON or CSV file", "folders named after classes"))
    return build_dataset(_for(request, subset), _LAYOUT, videos, labels, None)


def _choose(request: Request, own: list[_AnnotationFile]) -> tuple[_AnnotationFile, str | None, str]:
    """Return the file, the subset to read from it, and the name of that subset."""
    by_name = {search.subset_named(one.path.name): one for one in own}
    if len(own) > 1 and (len(by_name) < len(own) or "" in by_name):
        search.only_one([one.path for one in own], TITLE)
        return _choose(request, own[:1])
    if len(own) == 1 and own[0].subsets:
        subset = _pick(request, own[0].subsets, own[0].path)
        return own[0], subset, subset
    if "" not in by_name:
        subset = _pick(request, sorted(by_name), request.root)
        return by_name[subset], None, subset
    return own[0], None, _whole_subset(request, own[0].path)


def _whole_subset(request: Request, where: Path) -> str:
    """Return the name of the whole set, for annotations without subsets."""
    if request.subset not in ("", EVERYTHING):
        raise DataError(
            f"{where}: it has no subsets, so there is no {request.subset!r}; leave the subset out, or add a column "
            "'split', or folders named after subsets",
            fault="F29",
        )
    return EVERYTHING


def _pick(request: Request, there: list[str] | tuple[str, ...], where: Path) -> str:
    """Return the requested subset by any of its names; the default is test, then validation."""
    meant = {search.subset_named(name) or name.casefold(): name for name in there}
    names = [request.subset] if request.subset else ["test", "validation"]
    for name in names:
        exact = next((one for one in there if one.casefold() == name.casefold()), None)
        match = exact or meant.get(search.subset_named(name) or name.casefold())
        if match is not None:
            return match
    raise DataError(
        f"{where}: no subset {request.subset or 'test or validation'!r}; it has {', '.join(there)}; name one of them",
        fault="F29",
    )


def _require_annotations(path: Path) -> _AnnotationFile:
    annotations = _open_annotations(path)
    if annotations is None:
        raise DataError(
            f"{path}: not annotations: no segments, classes, questions or sentences of videos; a table needs a header "
            "such as file_name,label or video_id,t_start,t_end,label or video,question,option_0,option_1,answer",
            fault="F28",
        )
    return annotations


def _open_annotations(path: Path) -> _AnnotationFile | None:
    """Open a file as annotations, or return None if it is something else; a broken one is an error."""
    source = Source(path)
    # Their rows have 'video' or 'id' as well, so they are recognised before tables of classes.
    if looks_like_questions(source):
        return _AnnotationFile(path, (), lambda subset: read_questions(path))
    if looks_like_moments(source):
        return _AnnotationFile(path, (), lambda subset: read_moments(path))
    rows = _table(source)
    if rows is not None:
        table = list(rows)
        subsets = tuple(dict.fromkeys(subset for _, _, subset in table if subset))
        return _AnnotationFile(path, subsets, lambda subset: _labelled(path, table, subset))
    try:
        name, format, match = recognise_format(source)
    except DataError as error:
        if error.fault == "F28":
            return None
        raise
    if match.kind == "predictions" or name == "activitynet-labels":
        return None  # predictions of a model
    if match.kind == "labels":
        read_labels = format.read_labels
        assert read_labels is not None
        return _AnnotationFile(path, read_subsets(source), lambda subset: read_labels(source, subset))
    read = format.read_truth
    assert read is not None
    named = tuple(dict.fromkeys(name for name in read(source, TruthOptions()).subsets if name))
    return _AnnotationFile(path, named, lambda subset: read(source, TruthOptions(subset=subset)))


def _table(source: Source) -> Iterator[tuple[str, str, str]] | None:
    """Return (video, class, subset) of each row, or None if the file is not a table of classes."""
    if source.is_folder:
        return None
    if source.path.name.lower().removesuffix(".gz").endswith(".jsonl"):
        lines = [line for line in source.lines if line.strip()]
        objects = [parse_json(line, source.path) for line in lines]
        return _rows_of_objects(source.path, objects) if objects and set(_LABEL) & set(objects[0]) else None
    if source.is_json:
        plain = source.head.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{") and source.document
        if plain and all(isinstance(label, str) for label in plain.values()):
            return ((video, label, "") for video, label in plain.items())
        return None
    header = source.header
    video, label, subset = (
        next((header.index(n) for n in names if n in header), None) for names in (_VIDEO, _LABEL, _SUBSET)
    )
    times = {"t_start", "start", "begin", "t-start", "time_start"} & set(header)
    if video is None or label is None or times:
        return None
    return ((row[video], row[label], row[subset] if subset is not None else "") for _, row in read_csv_rows(source))


def _rows_of_objects(path: Path, objects: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for line, entry in enumerate(objects, 1):
        video, label, subset = (
            next((entry[n] for n in names if n in entry), "") for names in (_VIDEO, _LABEL, _SUBSET)
        )
        if not isinstance(video, str) or not video or not isinstance(label, str | int) or not isinstance(subset, str):
            raise DataError(f"{path}: line {line} is {describe(entry)}, without 'file_name' and 'label'", fault="F28")
        yield video, str(label), subset


def _labelled(path: Path, table: list[tuple[str, str, str]], subset: str | None) -> VideoLabels:
    labels = LabelList(path)
    for video, label, own in table:
        if not video.strip() or not label.strip():
            raise DataError(f"{path}: the row of {video!r} has no video or no class; fill it in", fault="F45")
        if subset is None or own.casefold() == subset.casefold():
            labels.add(normalize_id(video.strip()), [label.strip()])
    return labels.finish(are_paths=True)
