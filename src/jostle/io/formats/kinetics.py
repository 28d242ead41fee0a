"""Lists of Kinetics: the official CSV, and the JSON of Mini Kinetics-C and Mini SSv2-C."""

from __future__ import annotations

from collections import Counter

from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows, require_number
from jostle.io.files.text import describe
from jostle.io.files.truth_table import check_subset
from jostle.io.files.video_ids import quote_name
from jostle.io.formats import activitynet

_MAX_SECONDS = 1_000_000  # file names have six digits


def recognise_json(source: Source, kind: Kind | None) -> FormatMatch | None:
    if activitynet.is_recognition(activitynet.entries_of(source)):
        return FormatMatch("labels", "its 'annotations' are objects, not lists of segments")
    return None


def read_json(source: Source, subset: str | None) -> VideoLabels:
    """Read the class of each video; the end of the segment, in frames, is the number of frames."""
    database = source.plain_document["database"]
    subsets = Counter(str(entry.get("subset") or "") for entry in database.values() if isinstance(entry, dict))
    if subset is not None:
        check_subset(source.path, subsets, subset)
    labels = LabelList(source.path)
    for video, entry in database.items():
        annotation = entry.get("annotations") if isinstance(entry, dict) else None
        label = annotation.get("label") if isinstance(annotation, dict) else None
        if (
            not isinstance(entry, dict)
            or not isinstance(annotation, dict)
            or not (isinstance(label, str) and label.strip())
        ):
            raise DataError(
                f"{source.path}: video {quote_name(video)} is {describe(entry)}, without a class name in 'annotations'",
                fault="F28",
            )
        if subset is not None and str(entry.get("subset") or "").casefold() != subset.casefold():
            continue
        segment = annotation.get("segment")
        last = segment[1] if isinstance(segment, list) and len(segment) == 2 else None
        labels.add(video, [label], frames=last if type(last) is int and 0 < last < 1 << 31 else None)
    return labels.finish(are_paths=False)


def recognise_csv(source: Source, kind: Kind | None) -> FormatMatch | None:
    if {"youtube_id", "time_start", "time_end"} <= set(source.header):
        return FormatMatch("labels", "it has a column 'youtube_id'")
    return None


def read_csv(source: Source, subset: str | None) -> VideoLabels:
    """Read the class of each clip; its id is `<youtube id>_<start>_<end>` with six digits each."""
    header = source.header
    if "label" not in header:
        raise DataError(f"{source.path}: line 1: no column 'label'; the test set has none to read", fault="F28")
    rows = list(read_csv_rows(source))
    split = header.index("split") if "split" in header else None
    if subset is not None:
        check_subset(source.path, Counter(fields[split] if split is not None else "" for _, fields in rows), subset)
    labels = LabelList(source.path)
    for line, fields in rows:
        if subset is not None and split is not None and fields[split].casefold() != subset.casefold():
            continue
        start, end = (
            _parse_seconds(source, line, name, fields[header.index(name)]) for name in ("time_start", "time_end")
        )
        label = fields[header.index("label")]
        if not label.strip():
            raise DataError(f"{source.path}: line {line} names no label; fill it in", fault="F45")
        labels.add(f"{fields[header.index('youtube_id')]}_{start:06d}_{end:06d}", [label])
    return labels.finish(are_paths=False)


def _parse_seconds(source: Source, line: int, name: str, field: str) -> int:
    value = require_number(source, line, name, field)
    if not 0 <= value < _MAX_SECONDS:  # also refuses NaN
        raise DataError(
            f"{source.path}: line {line}: {name} is {field[:40]!r}, not a time in a video; correct it", fault="F105"
        )
    return int(value)


formats.add(
    "kinetics-json",
    Format(about="a JSON 'database' with one class a video", recognise=recognise_json, read_labels=read_json),
)
formats.add(
    "kinetics-csv",
    Format(about="Kinetics' CSV of YouTube clips", recognise=recognise_csv, read_labels=read_csv),
)
