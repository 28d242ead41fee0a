"""FiftyOne's temporal detections: `{"classes", "labels": {id: [{"label", "timestamps": [start, end], "confidence"}]}}`.

FiftyOne may give `support` instead, in frames; those are times only where the rate is known and constant, so they
are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jostle.core.formatting import describe
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.prediction_table import NameIndex, build_predictions
from jostle.io.files.source import Source
from jostle.io.files.truth_table import TruthOptions, TruthTable
from jostle.io.files.video_ids import quote_name
from jostle.io.formats.activitynet import group_by_video


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or "database" in source.document:
        return None
    labels = source.document.get("labels")
    if not isinstance(labels, dict):
        return None
    entries = [entry for video_labels in labels.values() if isinstance(video_labels, list) for entry in video_labels]
    if entries and not any(isinstance(entry, dict) for entry in entries):
        return None
    if any(isinstance(entry, dict) and entry.get("confidence") is not None for entry in entries):
        return FormatMatch("predictions", "its labels have a 'confidence'")
    if not entries and kind == "predictions":
        return FormatMatch("predictions", "its 'labels' are empty")
    return FormatMatch("truth", "its labels have no 'confidence'")


def _entries(source: Source) -> Iterator[tuple[str, list[Any]]]:
    for video, entries in source.document["labels"].items():
        if entries is not None and not isinstance(entries, list):
            raise DataError(
                f"{source.path}: video {quote_name(video)} is {describe(entries)}, not a list of detections",
                fault="F28",
            )
        yield video, entries or []


def _label(source: Source, entry: dict[str, Any]) -> object:
    """Return the label of an entry; an integer is an index into `classes`."""
    label, classes = entry.get("label"), source.document.get("classes")
    if type(label) is int and isinstance(classes, list) and 0 <= label < len(classes):
        return classes[label]
    return label


def _refuse_frames(source: Source, video: str, i: int, entry: dict[str, Any]) -> None:
    if "timestamps" not in entry and "support" in entry:
        raise DataError(
            f"{source.path}: video {quote_name(video)}: detection {i} has 'support' {entry['support']}, in frames, and "
            "the file gives no rate to turn them into seconds; export the labels with use_timestamps=True",
            fault="F34",
        )


def read(source: Source, fix: bool) -> Predictions:
    """Read the detections, in the order of the file."""
    videos, labels = NameIndex(ids=True), NameIndex()
    columns: dict[str, list[float]] = {name: [] for name in ("video", "start", "end", "label", "score")}
    locations: list[str] = []
    left_out: dict[str, int] = {}
    for video, entries in _entries(source):
        index = videos[video]
        for i, entry in enumerate(entries):
            where = f"video {quote_name(video)}, detection {i},"
            if isinstance(entry, dict):
                _refuse_frames(source, video, i, entry)
            fault, problem = _find_fault(source, entry)
            if fault:
                if not fix:
                    raise DataError(f"{source.path}: {where} {problem}", fault=fault)
                left_out["no detection, dropped"] = left_out.get("no detection, dropped", 0) + 1
                continue
            start, end = entry["timestamps"]
            label = _label(source, entry)
            assert isinstance(label, str)
            values = (index, start, end, labels[label], entry["confidence"])
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
            locations.append(where)
    return build_predictions(
        source.path,
        videos=list(videos.names),
        labels=list(labels.names),
        columns=columns,
        where=locations.__getitem__,
        fix=fix,
        left_out=left_out,
    )


def _find_fault(source: Source, entry: object) -> tuple[str, str]:
    if not isinstance(entry, dict):
        return "F28", f"is {describe(entry)}, not an object"
    label, times, score = _label(source, entry), entry.get("timestamps"), entry.get("confidence")
    if not (isinstance(label, str) and label.strip()):
        return "F45", f"has {describe(label)} as its label, not a class"
    if not isinstance(times, list) or len(times) != 2 or any(type(time) not in (int, float) for time in times):
        return "F42", f"has {describe(times)} as its timestamps, not [start, end] in seconds"
    if type(score) not in (int, float):
        return "F41", f"has {describe(score)} as its confidence, not a number"
    return "", ""


def read_truth(source: Source, options: TruthOptions) -> Truth:
    """Read the instances, in the order of the file."""
    table = TruthTable(source.path, options)
    for spelled, entries in _entries(source):
        video = table.open_video(spelled)
        for i, entry in enumerate(entries):
            if not isinstance(entry, dict):
                table.refuse(video, f"detection {i} is {describe(entry)}, not an object")
                continue
            _refuse_frames(source, spelled, i, entry)
            table.add(video, _label(source, entry), entry.get("timestamps"), where=f"detection {i}")
    return table.finish()


def write(predictions: Predictions, path: Path) -> None:
    """Write detections with timestamps and confidences."""
    write_text(path, _pieces(predictions))


def write_truth(truth: Truth, path: Path) -> None:
    """Write true instances with their timestamps."""
    write_text(path, _pieces(truth))


def _pieces(rows: Predictions | Truth) -> Iterator[str]:
    order, firsts = group_by_video(rows.video, len(rows.videos))
    yield f'{{"classes": {json.dumps(rows.classes)}, "labels": {{'
    for video, name in enumerate(rows.videos):
        entries = []
        for row in order[firsts[video] : firsts[video + 1]].tolist():
            entry: dict[str, Any] = {
                "label": rows.classes[rows.label[row]],
                "timestamps": [float(rows.start[row]), float(rows.end[row])],
            }
            if isinstance(rows, Predictions):
                entry["confidence"] = float(rows.score[row])
            entries.append(entry)
        yield f"{',' if video else ''}\n{json.dumps(name)}: {json.dumps(entries, allow_nan=False)}"
    yield "\n}}\n"


formats.add(
    "fiftyone",
    Format(
        about="FiftyOne's labels.json of temporal detections, with timestamps",
        recognise=recognise,
        read_truth=read_truth,
        read_predictions=read,
        write_truth=write_truth,
        write_predictions=write,
        holds=frozenset(("empty_videos", "names")),
    ),
)
