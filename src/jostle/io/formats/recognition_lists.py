"""Lists of videos for recognition.

`path label ...` as mmaction2, SlowFast and TimeSformer read them, `folder frames label ...` for folders of images,
the official CSV of Kinetics, and the JSON of Mini Kinetics-C and Mini SSv2-C.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jostle.core.formatting import describe
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows, require_number
from jostle.io.files.truth_table import check_subset
from jostle.io.files.video_ids import quote_name
from jostle.io.formats import activitynet
from jostle.io.video.video_source import video_suffixes

# A path may contain spaces, so numbers are matched from the end of the line, on reversed text. Matched from the front,
# any number might be the first, and a line of a million numbers would take quadratic time.
_REVERSED = re.compile(r"[ \t]*((?:\d{1,9}[ \t]+)+)(.*\S)", re.ASCII)
_UCF101 = re.compile(r"\s*(\w+)/v_\w+\.avi(?:\s+\d+)?\s*", re.ASCII)


def _is_list(source: Source) -> bool:
    words = source.words
    return len(words) > 1 and words[-1].isascii() and words[-1].isdigit() and not words[0].isdigit()


def _is_ucf101(source: Source) -> bool:
    match = _UCF101.fullmatch(" ".join(source.words))
    # Clips of HandstandPushups are called v_HandStandPushups.
    return match is not None and f"/v_{match[1]}_".lower() in match[0].lower()


def _names_folders(source: Source) -> bool:
    """Return whether the list names folders: two or more numbers after a path without a video suffix."""
    parts = _split_line(" ".join(source.words))
    return parts is not None and len(parts[1]) > 1 and Path(parts[0]).suffix.lower() not in video_suffixes()


def recognise_videos(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not _is_list(source) or _is_ucf101(source) or _names_folders(source) or _is_scored(source, kind):
        return None
    return FormatMatch("labels", "its lines are 'path label'")


def recognise_folders(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not _is_list(source) or not _names_folders(source) or _is_scored(source, kind):
        return None
    return FormatMatch("labels", "its lines are 'folder frames label'")


def _is_scored(source: Source, kind: Kind | None) -> bool:
    """Return whether lines are THUMOS14's detections: five fields, and labels are not required."""
    return len(source.words) == 5 and kind != "labels"


def recognise_ucf101(source: Source, kind: Kind | None) -> FormatMatch | None:
    return FormatMatch("labels", "its lines are 'Class/video.avi'") if _is_ucf101(source) else None


def read_videos(source: Source, subset: str | None) -> VideoLabels:
    """Read a list of videos and class numbers."""
    labels = LabelList(source.path, numbered=True)
    for _, path, numbers in _lines(source):
        labels.add(path, [str(number) for number in numbers])
    return labels.finish(are_paths=True)


def read_folders(source: Source, subset: str | None) -> VideoLabels:
    """Read a list of folders, their frame counts and class numbers."""
    labels = LabelList(source.path, numbered=True)
    for line, path, numbers in _lines(source):
        if len(numbers) < 2:
            raise DataError(
                f"{source.path}: line {line} has one number after the folder, not its frames and its label", fault="F39"
            )
        labels.add(path, [str(number) for number in numbers[1:]], frames=numbers[0])
    return labels.finish(are_paths=True)


def read_ucf101(source: Source, subset: str | None) -> VideoLabels:
    """Read a split file of UCF101; the folder is the class."""
    labels = LabelList(source.path)
    for line, text in enumerate(source.lines, 1):
        if not text.strip():
            continue
        match = _UCF101.fullmatch(text)
        if match is None:
            raise DataError(f"{source.path}: line {line} is {text[:60]!r}, not 'Class/v_name.avi'", fault="F39")
        labels.add(text.split()[0], [match[1]])
    return labels.finish(are_paths=True)


def _lines(source: Source) -> Iterator[tuple[int, str, list[int]]]:
    for line, text in enumerate(source.lines, 1):
        if not text.strip():
            continue
        parts = _split_line(text)
        if parts is None:
            raise DataError(
                f"{source.path}: line {line} is {text[:60]!r}, not a path and a class number; complete it", fault="F39"
            )
        yield line, *parts


def _split_line(line: str) -> tuple[str, list[int]] | None:
    """Split a line into path and numbers; None if it lacks either.

    >>> _split_line("my films/a 1.mp4 3 14"), _split_line("a.mp4")
    (('my films/a 1.mp4', [3, 14]), None)
    """
    match = _REVERSED.fullmatch(line[::-1])
    return match and (match[2][::-1], [int(word[::-1]) for word in match[1].split()[::-1]])


def write_videos(labels: VideoLabels, path: Path) -> None:
    """Write `path label ...`, or `folder frames label ...` if the frames are known."""
    if not labels.numbered:
        raise BadValue("a list of videos holds class numbers, and these labels are names; write JSON instead")
    of_video: list[list[str]] = [[] for _ in labels.videos]
    for video, label in zip(labels.video.tolist(), labels.label.tolist(), strict=True):
        of_video[video].append(labels.classes[label])
    lines = []
    for video, video_labels in enumerate(of_video):
        video_path = labels.paths[video] if labels.paths else labels.videos[video]
        frames = [str(labels.frames[video])] if len(labels.frames) else []
        line = " ".join([video_path, *frames, *video_labels])
        if not video_labels or not (parts := _split_line(line)) or parts[0] != video_path or video_path[0] in "{[(}]":
            raise BadValue(
                f"{video_path!r} with {len(video_labels)} label(s) cannot be a line of a list; write JSON instead"
            )
        lines.append(line + "\n")
    write_text(path, lines)


formats.add(
    "video-list",
    Format(
        about="a list of 'path label', as mmaction2, SlowFast and TimeSformer read it",
        recognise=recognise_videos,
        read_labels=read_videos,
        write_labels=write_videos,
        writes={"labels": (".txt", ".csv")},
        holds=frozenset(("paths", "frames", "numbers", "true")),
    ),
)
formats.add(
    "frames-list",
    Format(
        about="a list of 'folder frames label', as mmaction2 reads raw frames",
        recognise=recognise_folders,
        read_labels=read_folders,
        write_labels=write_videos,
        holds=frozenset(("paths", "frames", "numbers", "true")),
    ),
)
formats.add(
    "ucf101-list",
    Format(about="a split file of UCF101, 'Class/video.avi id'", recognise=recognise_ucf101, read_labels=read_ucf101),
)


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
    "kinetics-csv", Format(about="Kinetics' CSV of YouTube clips", recognise=recognise_csv, read_labels=read_csv)
)
