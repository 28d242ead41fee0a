"""Ground truth in ActivityNet's JSON, the format that all others are translated into.

`{"version", "taxonomy", "database": {id: {"subset", "duration", "annotations": [{"label", "segment": [start,
end]}]}}}` in seconds. Only `database` is required. DETAD's characteristics are read where an annotation has them,
and so are `fps`, `label_id` and a list of `ambiguous` segments, so that nothing a `Truth` holds is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.text import describe
from jostle.io.files.truth_table import TruthOptions, TruthTable
from jostle.io.files.video_ids import quote_name

HOLDS = frozenset(
    ("subset", "duration", "fps", "label_ids", "characteristics", "all_segments", "ambiguous", "empty_videos")
)
_WHOLE = frozenset(("context-size", "context-distance", "num-instances"))


def entries_of(source: Source) -> list[dict[str, Any]]:
    """Return the entries of a file with a `database` that are objects; none for any other file."""
    if not source.is_json:
        return []
    database = source.document.get("database")
    return [entry for entry in database.values() if isinstance(entry, dict)] if isinstance(database, dict) else []


def is_recognition(entries: list[dict[str, Any]]) -> bool:
    """Return whether entries have one annotation of the whole video, as Kinetics' JSON has."""
    return any(isinstance(entry.get("annotations"), dict) for entry in entries)


def is_thumos14(entries: list[dict[str, Any]]) -> bool:
    """Return whether videos have rates or annotations have class numbers, as in `thumos14.json`."""
    return any("fps" in entry for entry in entries) or any(
        "label_id" in annotation
        for entry in entries
        if isinstance(annotations := entry.get("annotations"), list)
        for annotation in annotations[:1]
        if isinstance(annotation, dict)
    )


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or "database" not in source.document:
        return None
    entries = entries_of(source)
    if is_recognition(entries) or is_thumos14(entries):
        return None
    return FormatMatch("truth", "it has 'database'")


def read(source: Source, options: TruthOptions) -> Truth:
    """Read the ground truth in a file with a `database`."""
    database = source.plain_document["database"]
    if not isinstance(database, dict):
        raise DataError(
            f"{source.path}: not ground truth: its 'database' is {describe(database)}, not an object of videos",
            fault="F28",
        )
    return read_database(source, options, database)


def read_database(
    source: Source, wanted: TruthOptions, database: Mapping[str, Any], *, duration: str = "duration"
) -> Truth:
    """Read ground truth from entries by video id; `duration` is the key of a video's length."""
    table = TruthTable(source.path, wanted)
    for key, entry in database.items():
        if not isinstance(entry, dict):
            raise DataError(
                f"{source.path}: video {quote_name(key)} is {describe(entry)}, not an object with 'annotations'",
                fault="F28",
            )
        video = table.open_video(key, subset=entry.get("subset"), duration=entry.get(duration), fps=entry.get("fps"))
        annotations = _list(source, key, entry, "annotations")
        for i, annotation in enumerate(annotations):
            if isinstance(annotation, dict):
                table.add(
                    video,
                    annotation.get("label"),
                    annotation.get("segment"),
                    where=f"annotation {i}",
                    label_id=annotation.get("label_id"),
                    facts=annotation,
                )
            else:
                table.refuse(video, f"annotation {i} is {describe(annotation)}, not an object")
        for i, segment in enumerate(_list(source, key, entry, "ambiguous")):
            table.add_ambiguous(video, segment, where=f"ambiguous segment {i}")
    return table.finish()


def _list(source: Source, key: str, entry: Mapping[str, Any], name: str) -> list[Any]:
    values = entry.get(name)
    if values is None:  # withheld, as in a test set
        return []
    if not isinstance(values, list):
        raise DataError(
            f"{source.path}: video {quote_name(key)}: '{name}' is {describe(values)}, not a list of segments; correct "
            "it",
            fault="F28",
        )
    return values


def read_labels(source: Source, subset: str | None) -> VideoLabels:
    """Read the classes that occur in each video."""
    truth = read(source, TruthOptions(subset=subset))
    pairs = np.array(
        list(dict.fromkeys(zip(truth.video.tolist(), truth.label.tolist(), strict=True))), np.int32
    ).reshape(-1, 2)
    return VideoLabels(truth.videos, truth.classes, pairs[:, 0], pairs[:, 1])


def write(truth: Truth, path: Path) -> None:
    """Write ground truth with everything that a `Truth` holds."""
    write_text(path, _pieces(truth, '{"version": "jostle", "taxonomy": [], "database": {', in_frames=False))


def write_thumos14(truth: Truth, path: Path) -> None:
    """Write `thumos14.json`: no taxonomy, segments in frames too, and a number for every class."""
    write_text(path, _pieces(truth, '{"version": "jostle", "database": {', in_frames=True))


def _pieces(truth: Truth, head: str, *, in_frames: bool) -> Iterator[str]:
    rows: list[list[int]] = [[] for _ in truth.videos]
    for row, video in enumerate(truth.video.tolist()):
        rows[video].append(row)
    spans: list[list[list[float]]] = [[] for _ in truth.videos]
    ambiguous = truth.ambiguous
    for video, start, end in zip(
        ambiguous.video.tolist(), ambiguous.start.tolist(), ambiguous.end.tolist(), strict=True
    ):
        spans[video].append([start, end])
    ids = truth.label_ids
    if ids is None and in_frames:
        order = sorted(truth.classes)
        ids = tuple(order.index(name) for name in truth.classes)
    yield head
    for video, name in enumerate(truth.videos):
        fps = float(truth.fps[video])
        entry: dict[str, Any] = {"subset": truth.subsets[video]} if truth.subsets[video] else {}
        for key, value in (("duration", float(truth.duration[video])), ("fps", fps)):
            if value == value:
                entry[key] = value
        entry["annotations"] = [_annotation(truth, row, ids, fps if in_frames else None) for row in rows[video]]
        if spans[video]:
            entry["ambiguous"] = spans[video]
        yield f"{',' if video else ''}\n{json.dumps(name)}: {json.dumps(entry, allow_nan=False)}"
    yield "\n}}\n"


def _annotation(truth: Truth, row: int, ids: tuple[int, ...] | None, fps: float | None) -> dict[str, Any]:
    label = int(truth.label[row])
    start, end = float(truth.start[row]), float(truth.end[row])
    annotation: dict[str, Any] = {"label": truth.classes[label], "segment": [start, end]}
    if fps is not None and fps == fps:
        annotation["segment(frames)"] = [start * fps, end * fps]
    if ids is not None:
        annotation["label_id"] = ids[label]
    for name, values in truth.characteristics.items():
        value = float(values[row])
        if value == value:
            annotation[name] = int(value) if name in _WHOLE and value.is_integer() else value
    if truth.all_segments is not None and len(truth.all_segments[row]):
        annotation["all-segments"] = truth.all_segments[row].tolist()
    return annotation


formats.add(
    "activitynet",
    Format(
        about="ActivityNet's JSON of ground truth, with DETAD's characteristics",
        recognise=recognise,
        read_truth=read,
        read_labels=read_labels,
        write_truth=write,
        writes={"truth": (".json",)},
        holds=HOLDS,
    ),
)
