"""Predictions in ActivityNet's JSON: `{"version", "results": {id: [{"label", "segment", "score"}]}, "external_data"}`.

Only `results` is required, as OpenTAD writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.types.columns import Indices
from jostle.core.types.predictions import Predictions
from jostle.errors import DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.prediction_table import ROW, DetectionRows, NameIndex, build_predictions
from jostle.io.files.source import Source
from jostle.io.files.text import describe
from jostle.io.files.video_ids import quote_name


def first_entry(source: Source) -> object:
    """Return the first entry of the first video that has one; None if there is none."""
    results = source.document.get("results")
    lists = results.values() if isinstance(results, dict) else []
    return next((entries[0] for entries in lists if isinstance(entries, list) and entries), None)


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or "results" not in source.document or "database" in source.document:
        return None
    first = first_entry(source)
    if isinstance(first, dict) and "segment" not in first and "label" in first:
        return None
    return FormatMatch("predictions", "it has 'results', not 'database'")


def read(source: Source, fix: bool) -> Predictions:
    """Read the detections under `results`, in the order of the file."""
    results, rows = results_of(source), source.rows
    index = NameIndex(ids=True)
    counts, left_out, row_count = [], dict[str, int](), 0
    for video, entries in results.items():
        before = len(index.names)
        if index[video] < before:
            raise duplicate_id_error(source, video)
        video_rows = entries.count(ROW)
        row_count += video_rows
        counts.append(video_rows)
        if video_rows < len(entries):
            i, entry = next((i, entry) for i, entry in enumerate(entries) if entry is not ROW)
            if not fix:
                fault, problem = _find_fault(entry)
                raise DataError(f"{source.path}: video {quote_name(video)}: detection {i} {problem}", fault=fault)
            left_out["no detection, dropped"] = left_out.get("no detection, dropped", 0) + len(entries) - video_rows
    if row_count < len(rows):
        raise DataError(
            f"{source.path}: {len(rows) - row_count} detection(s) lie outside 'results'; move them there, or remove "
            "them",
            fault="F28",
        )
    ids, firsts = list(index.names), np.cumsum([0, *counts])

    def where(row: int) -> str:
        video = int(np.searchsorted(firsts, row, "right")) - 1
        return f"video {quote_name(ids[video])}, detection {row - int(firsts[video])},"

    return build_predictions(
        source.path,
        videos=ids,
        labels=list(rows.labels),
        columns={"video": np.repeat(np.arange(len(ids), dtype=np.int32), counts), **_columns(rows)},
        where=where,
        fix=fix,
        left_out=left_out,
    )


def _columns(rows: DetectionRows) -> dict[str, Any]:
    if not len(rows):
        return {"start": np.zeros(0), "end": np.zeros(0), "score": np.zeros(0), "label": np.zeros(0, np.int32)}
    return {
        "start": np.frombuffer(rows.start),
        "end": np.frombuffer(rows.end),
        "score": np.frombuffer(rows.score),
        "label": np.frombuffer(rows.code, np.intc),
    }


def duplicate_id_error(source: Source, video: str) -> DataError:
    """Return the error for an id that appears in two Unicode forms."""
    return DataError(f"{source.path}: the id {video!a} appears in two Unicode forms; keep one of them", fault="F22")


def results_of(source: Source) -> Mapping[str, list[Any]]:
    """Return the lists under `results` after checking their types."""
    results = source.document["results"]
    if not isinstance(results, dict):
        raise DataError(
            f"{source.path}: not predictions: its 'results' is {describe(results)}, not an object of videos",
            fault="F28",
        )
    for video, entries in results.items():
        if not isinstance(entries, list):
            raise DataError(
                f"{source.path}: video {quote_name(video)} is {describe(entries)}, not a list of detections",
                fault="F28",
            )
    return results


def _find_fault(entry: object) -> tuple[str, str]:
    """Return the fault code and a description of an invalid detection."""
    if not isinstance(entry, dict):
        return "F28", f"is {describe(entry)}, not an object with 'label', 'segment' and 'score'"
    missing = [key for key in ("label", "segment", "score") if key not in entry]
    if missing:
        return "F28", f"has no {missing[0]!r}; it needs 'label', 'segment' and 'score'"
    label, segment, score = entry["label"], entry["segment"], entry["score"]
    if type(score) not in (int, float):
        quotes = "; write it without quotes" if isinstance(score, str) else ""
        return "F41", f"has {describe(score)} as its score, not a number{quotes}"
    if not (isinstance(label, str) and label) and type(label) is not int:
        return "F45", f"has {describe(label)} as its label, not a class"
    if not isinstance(segment, list) or len(segment) != 2:
        return "F42", f"has {describe(segment)} as its segment, not [start, end] in seconds"
    wrong = next(value for value in segment if type(value) not in (int, float))
    return "F42", f"has {describe(wrong)} in its segment, not a number of seconds"


def write(predictions: Predictions, path: Path) -> None:
    """Write predictions with all three keys that strict readers require."""
    write_text(path, _pieces(predictions, '{"version": "jostle", "results": {', '\n}, "external_data": {}}\n'))


def write_results_only(predictions: Predictions, path: Path) -> None:
    """Write `results` alone, as OpenTAD does."""
    write_text(path, _pieces(predictions, '{"results": {', "\n}}\n"))


def _pieces(predictions: Predictions, head: str, tail: str) -> Iterator[str]:
    names = predictions.classes if predictions.numbered else tuple(map(json.dumps, predictions.classes))
    beginnings = [f'{{"label": {name}, "segment": [' for name in names]
    order, firsts = group_by_video(predictions.video, len(predictions.videos))
    yield head
    for video, name in enumerate(predictions.videos):
        rows = order[firsts[video] : firsts[video + 1]]
        columns = (predictions.label, predictions.start, predictions.end, predictions.score)
        entries = [
            f'{beginnings[label]}{start!r}, {end!r}], "score": {score!r}}}'
            for label, start, end, score in zip(*(column[rows].tolist() for column in columns), strict=True)
        ]
        yield f"{',' if video else ''}\n{json.dumps(name)}: [{', '.join(entries)}]"
    yield tail


def group_by_video(video: Indices, count: int) -> tuple[Any, Any]:
    """Return the order of rows grouped by video, and the first row of each video."""
    firsts = np.concatenate([[0], np.cumsum(np.bincount(video, minlength=count))])
    return np.argsort(video, kind="stable"), firsts


formats.add(
    "activitynet-results",
    Format(
        about="ActivityNet's JSON of predictions",
        recognise=recognise,
        read_predictions=read,
        write_predictions=write,
        writes={"predictions": (".json",)},
        holds=frozenset(("empty_videos", "names", "numbers")),
    ),
)
formats.add(
    "opentad",
    Format(
        about="OpenTAD's result_detection.json: ActivityNet's predictions with 'results' alone",
        recognise=lambda source, kind: None,  # read as activitynet-results
        write_predictions=write_results_only,
        holds=frozenset(("empty_videos", "names", "numbers")),
    ),
)
