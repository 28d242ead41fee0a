"""ActivityNet's JSON: ground truth, the format that all others are translated into, and predictions.

`{"version", "taxonomy", "database": {id: {"subset", "duration", "annotations": [{"label", "segment": [start,
end]}]}}}` in seconds. Only `database` is required. DETAD's characteristics are read where an annotation has them,
and so are `fps`, `label_id` and a list of `ambiguous` segments, so that nothing a `Truth` holds is lost. BMN's
ground truth has the entries by video id at the top, each with `duration_second`.

Predictions are `{"version", "results": {id: [{"label", "segment", "score"}]}, "external_data"}`, of which only
`results` is required, as OpenTAD writes it. Classes of whole videos are predictions without segments.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.formatting import describe
from jostle.core.types.columns import Indices
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.prediction_table import ROW, DetectionRows, NameIndex, build_predictions
from jostle.io.files.source import Source
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


def first_entry(source: Source) -> object:
    """Return the first entry of the first video that has one; None if there is none."""
    results = source.document.get("results")
    lists = results.values() if isinstance(results, dict) else []
    return next((entries[0] for entries in lists if isinstance(entries, list) and entries), None)


def recognise_results(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or "results" not in source.document or "database" in source.document:
        return None
    first = first_entry(source)
    if isinstance(first, dict) and "segment" not in first and "label" in first:
        return None
    return FormatMatch("predictions", "it has 'results', not 'database'")


def read_results(source: Source, fix: bool) -> Predictions:
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
        columns={"video": np.repeat(np.arange(len(ids), dtype=np.int32), counts), **_result_columns(rows)},
        where=where,
        fix=fix,
        left_out=left_out,
    )


def _result_columns(rows: DetectionRows) -> dict[str, Any]:
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


def write_results(predictions: Predictions, path: Path) -> None:
    """Write predictions with all three keys that strict readers require."""
    write_text(path, _result_pieces(predictions, '{"version": "jostle", "results": {', '\n}, "external_data": {}}\n'))


def write_results_only(predictions: Predictions, path: Path) -> None:
    """Write `results` alone, as OpenTAD does."""
    write_text(path, _result_pieces(predictions, '{"results": {', "\n}}\n"))


def _result_pieces(predictions: Predictions, head: str, tail: str) -> Iterator[str]:
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
        recognise=recognise_results,
        read_predictions=read_results,
        write_predictions=write_results,
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


def recognise_labels(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or "results" not in source.document or "database" in source.document:
        return None
    first = first_entry(source)
    if isinstance(first, dict) and "segment" not in first and "label" in first:
        return FormatMatch("labels", "the entries of its 'results' have no 'segment'")
    return FormatMatch("labels", "its 'results' are empty") if first is None and kind == "labels" else None


def read_video_labels(source: Source, subset: str | None) -> VideoLabels:
    """Read scored classes, in the order of the file; integers are class numbers."""
    videos, labels = NameIndex(ids=True), NameIndex()
    rows: list[tuple[int, int, float]] = []
    kinds = set()
    for video, entries in results_of(source).items():
        before = len(videos.names)
        if videos[video] < before:
            raise duplicate_id_error(source, video)
        for i, entry in enumerate(entries):
            where = f"{source.path}: video {quote_name(video)}: entry {i}"
            if not isinstance(entry, dict) or "segment" in entry:
                raise DataError(f"{where} is not a label with a score; remove it, or its 'segment'", fault="F28")
            label, score = entry.get("label"), entry.get("score")
            if not (isinstance(label, str) and label.strip()) and (type(label) is not int or label < 0):
                raise DataError(f"{where} has {describe(label)} as its label, not a class", fault="F45")
            if isinstance(score, bool) or not isinstance(score, int | float):
                raise DataError(f"{where} has {describe(score)} as its score, not a number", fault="F41")
            if not math.isfinite(score):
                raise DataError(f"{where} has the score {score}, which is not finite; correct it", fault="F40")
            kinds.add(type(label))
            rows.append((videos[video], labels[str(label)], float(score)))
    if len(kinds) > 1:
        raise DataError(f"{source.path}: some labels are numbers and some are names; use one kind", fault="F45")
    table = np.array(rows, np.float64).reshape(-1, 3)
    return VideoLabels(
        videos=tuple(videos.names),
        classes=tuple(labels.names),
        video=table[:, 0].astype(np.int32),
        label=table[:, 1].astype(np.int32),
        score=table[:, 2].copy(),
        numbered=int in kinds,
    )


def write_labels(labels: VideoLabels, path: Path) -> None:
    """Write classes of whole videos; the truth, which has no scores, gets the score 1."""
    write_text(path, _label_pieces(labels))


def _label_pieces(labels: VideoLabels) -> Iterator[str]:
    order, firsts = group_by_video(labels.video, len(labels.videos))
    names: list[str | int] = [int(name) if labels.numbered else name for name in labels.classes]
    yield '{"version": "jostle", "results": {'
    for video, spelled in enumerate(labels.videos):
        entries = [
            {"label": names[labels.label[row]], "score": 1.0 if labels.score is None else float(labels.score[row])}
            for row in order[firsts[video] : firsts[video + 1]].tolist()
        ]
        yield f"{',' if video else ''}\n{json.dumps(spelled)}: {json.dumps(entries)}"
    yield '\n}, "external_data": {}}\n'


formats.add(
    "activitynet-labels",
    Format(
        about="ActivityNet's JSON of predicted classes of whole videos",
        recognise=recognise_labels,
        read_labels=read_video_labels,
        write_labels=write_labels,
        writes={"labels": (".json",)},
        holds=frozenset(("scores", "numbers")),
    ),
)


def recognise_bmn(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or not source.document:
        return None
    first = next(iter(source.document.values()))
    if isinstance(first, dict) and "annotations" in first and "duration_second" in first:
        return FormatMatch("truth", "its entries have 'annotations'")
    return None


def read_bmn(source: Source, options: TruthOptions) -> Truth:
    return read_database(source, options, source.plain_document, duration="duration_second")


formats.add(
    "bmn", Format(about="BMN's JSON of ground truth, without subsets", recognise=recognise_bmn, read_truth=read_bmn)
)
