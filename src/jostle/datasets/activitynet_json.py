"""Ground truth in ActivityNet's JSON, and in the `thumos14.json` that ActionFormer and its heirs read.

Both are `{"database": {id: {"subset", "duration", "annotations": [{"label", "segment": [start, end]}]}}}` in
seconds; the second adds `fps` by video. Only `database` is required, and keys that are not used are ignored.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from jostle.datasets.names import normal_id, shown
from jostle.datasets.text import describe, read_json
from jostle.errors import DataError, UnknownName
from jostle.types.clip import checked_rate
from jostle.types.segments import Segments

# Digits are bounded because a fraction would spell out every one of those that an exponent stands for.
_NUMBER_TEXT = re.compile(r"\s*\d{1,12}(\.\d{1,12}|/\d{1,12})?\s*")


@dataclass(frozen=True, eq=False)
class VideoTruth:
    """What the annotations say of one video.

    Attributes:
        subset: as the file spells it, `Validation` or `validation`; empty if it does not say.
        duration: seconds, or None if unknown. Segments may end later, as some of THUMOS14 do.
        fps: the exact rate, or None if unknown.
        segments: the actions; `classes` are all class names of the file, sorted, so that labels of different
            videos compare.
    """

    subset: str
    duration: float | None
    fps: Fraction | None
    segments: Segments


def read_annotations(path: str | Path, *, subset: str | None = None) -> dict[str, VideoTruth]:
    """The truth of every video in a file, by its id in normal form.

    Args:
        subset: only videos of this subset, whatever the case of its letters.

    Raises:
        DataError: if the file is not ground truth, a segment is not one, or nothing is in the subset.
    """
    database = _database(path)
    classes = _classes(database.values())
    if subset is not None:
        _check_subset(path, database, subset)
    return {
        video_id: _video(path, video_id, entry, classes)
        for video_id, entry in database.items()
        if subset is None or _in_subset(entry, subset)
    }


def segments_of(path: str | Path, video_id: str, *, subset: str | None = None) -> Segments:
    """The actions of one video. Other videos of the file are not checked; for many, use `read_annotations`.

    Raises:
        UnknownName: if the file does not name the video.
        DataError: if the file is not ground truth, a segment is not one, or the video is in another subset.
    """
    database = _database(path)
    wanted = normal_id(video_id)
    if wanted not in database:
        raise UnknownName(f"video in {path}", video_id, _near(wanted, database))
    entry = database[wanted]
    if subset is not None and not _in_subset(entry, subset):
        _check_subset(path, database, subset)
        raise DataError(
            f"{path}: video {shown(wanted)} is in subset {_subset(entry)!r}, not in {subset!r}; "
            "name its subset, or none",
            fault="F29",
        )
    return _video(path, wanted, entry, _classes(database.values())).segments


def fault_in(segment: object) -> str:
    """What keeps a JSON value from being a segment; empty if it is one.

    >>> fault_in([1.5, 2]), fault_in([2, 1])
    ('', 'ends at 1, before it starts at 2')
    """
    if not isinstance(segment, list):
        return f"is {describe(segment)}, not [start, end] in seconds"
    if len(segment) != 2:
        return f"has {len(segment)} value(s), not a start and an end"
    for value in segment:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"holds {describe(value)}, not a number of seconds"
        if not math.isfinite(value):
            return f"holds {value}, which is not finite"
    start, end = segment
    if start < 0:
        return f"starts at {start}, before the video"
    if end < start:
        return f"ends at {end}, before it starts at {start}"
    # As floats, which is what they become: two long whole numbers can differ and still be one float.
    return f"has no length: it starts and ends at {start}" if float(start) == float(end) else ""


def _database(path: str | Path) -> dict[str, dict[str, Any]]:
    """The entries of a file by normal id, each known to be an object."""
    content = read_json(path)
    database = content.get("database")
    if not isinstance(database, dict):
        raise DataError(f"{path}: not ground truth: {_likeness(content)}", fault="F28")
    made: dict[str, dict[str, Any]] = {}
    spelled: dict[str, str] = {}
    for key, entry in database.items():
        video_id = normal_id(key)
        if video_id in made:
            raise DataError(
                f"{path}: the ids {spelled[video_id]!a} and {key!a} are one id in two Unicode forms; keep one of them",
                fault="F22",
            )
        if not isinstance(entry, dict):
            raise DataError(
                f"{path}: video {shown(video_id)} is {describe(entry)}, not an object with 'annotations'",
                fault="F28",
            )
        made[video_id], spelled[video_id] = entry, key
    return made


def _likeness(content: Mapping[str, Any]) -> str:
    """What a file without a database looks like, and what to give instead."""
    if "database" in content:
        return f"its 'database' is {describe(content['database'])}, not an object of videos"
    if "results" in content:
        return (
            "it looks like predictions (it has 'results', not 'database'); give the annotations here, and "
            "this file where predictions are asked for"
        )
    return f"it has no 'database'; it holds {describe(content)}"


def _video(path: str | Path, video_id: str, entry: Mapping[str, Any], classes: tuple[str, ...]) -> VideoTruth:
    where = f"{path}: video {shown(video_id)}"
    annotations = entry.get("annotations")
    if annotations is None:  # withheld, as in a test set
        annotations = []
    if not isinstance(annotations, list):
        raise DataError(
            f"{where}: 'annotations' is {describe(annotations)}, not a list of segments; "
            "it looks like labels of whole videos, as recognition has them",
            fault="F28",
        )
    index = {name: label for label, name in enumerate(classes)}
    starts, ends, labels = [], [], []
    for i, annotation in enumerate(annotations):
        if not isinstance(annotation, dict):
            raise DataError(f"{where}: annotation {i} is {describe(annotation)}, not an object", fault="F30")
        label = annotation.get("label")
        if not isinstance(label, str) or label not in index:
            raise DataError(f"{where}: the label of annotation {i} is {describe(label)}, not a class name", fault="F30")
        fault = fault_in(annotation.get("segment"))
        if fault:
            raise DataError(
                f"{where}: the segment of annotation {i} {fault}; a segment needs 0 <= start < end; "
                "correct or remove it",
                fault="F30",
            )
        start, end = annotation["segment"]
        starts.append(float(start))
        ends.append(float(end))
        labels.append(index[label])
    return VideoTruth(
        subset=_subset(entry),
        duration=_duration(where, entry.get("duration")),
        fps=_fps(where, entry.get("fps")),
        segments=Segments(np.array(starts), np.array(ends), np.array(labels, np.int64), classes=classes),
    )


def _duration(where: str, value: object) -> float | None:
    seconds = _positive(where, "duration", value, "seconds")
    return None if seconds is None else float(seconds)


def _fps(where: str, value: object) -> Fraction | None:
    rate = _positive(where, "fps", value, "frames per second")
    return None if rate is None else checked_rate(rate)


def _positive(where: str, name: str, value: object, unit: str) -> Fraction | float | None:
    """A positive number, or None where the file leaves it out; 0 is how some files leave it out."""
    number = value
    if isinstance(value, str) and _NUMBER_TEXT.fullmatch(value):
        with contextlib.suppress(ZeroDivisionError):
            number = Fraction(value)
    if isinstance(number, bool) or not isinstance(number, int | float | Fraction | None):
        number = math.nan
    if not number:
        return None
    if not (math.isfinite(number) and number > 0):
        raise DataError(
            f"{where}: '{name}' is {describe(value)}, not a positive number of {unit}; correct or remove it",
            fault="F34",
        )
    return number


def _classes(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The sorted class names of a whole file; what is no annotation is left for the reader to refuse."""
    names = set()
    for entry in entries:
        annotations = entry.get("annotations")
        for annotation in annotations if isinstance(annotations, list) else ():
            label = annotation.get("label") if isinstance(annotation, dict) else None
            if isinstance(label, str) and label.strip():
                names.add(label)
    return tuple(sorted(names))


def _subset(entry: Mapping[str, Any]) -> str:
    subset = entry.get("subset")
    return subset if isinstance(subset, str) else ""


def _in_subset(entry: Mapping[str, Any], subset: str) -> bool:
    return _subset(entry).casefold() == subset.casefold()


def _check_subset(path: str | Path, database: Mapping[str, Mapping[str, Any]], subset: str) -> None:
    counts = Counter(map(_subset, database.values()))
    if subset.casefold() not in map(str.casefold, counts):
        present = ", ".join(f"{name or '(none)'} ({count})" for name, count in sorted(counts.items()))
        raise DataError(
            f"{path}: no video is in subset {subset!r}; name one of those present: {present or 'none'}",
            fault="F29",
        )


def _near(video_id: str, known: Iterable[str]) -> list[str]:
    """The ids worth naming when `video_id` is not among them: near ones, or a few and how many more."""
    names = sorted(known)
    close = difflib.get_close_matches(video_id, names, n=3, cutoff=0.6)
    if close or len(names) <= 5:
        return close or names
    return [*names[:4], f"{names[4]} and {len(names) - 5} more"]
