"""Lists of videos for recognition: `path label ...` as mmaction2, SlowFast and TimeSformer read them, and
`folder frames label ...` for videos that lie as image folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, Kind, Likeness, formats
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.video_ids import VIDEO_SUFFIXES

# A path may hold spaces, so numbers are counted from the end: this is for lines that are turned round. From the front
# each number might be the first, and a line of a million of them would be looked at a million times.
_TURNED = re.compile(r"[ \t]*((?:\d{1,9}[ \t]+)+)(.*\S)", re.ASCII)
_UCF101 = re.compile(r"\s*(\w+)/v_\w+\.avi(?:\s+\d+)?\s*", re.ASCII)


def _is_list(source: Source) -> bool:
    words = source.words
    return len(words) > 1 and words[-1].isascii() and words[-1].isdigit() and not words[0].isdigit()


def _is_ucf101(source: Source) -> bool:
    match = _UCF101.fullmatch(" ".join(source.words))
    # Clips of HandstandPushups are called v_HandStandPushups.
    return match is not None and f"/v_{match[1]}_".lower() in match[0].lower()


def _names_folders(source: Source) -> bool:
    """Whether the list is one of folders: two numbers or more after something that is not named like a video."""
    found = _parted(" ".join(source.words))
    return found is not None and len(found[1]) > 1 and Path(found[0]).suffix.lower() not in VIDEO_SUFFIXES


def recognise_videos(source: Source, kind: Kind | None) -> Likeness | None:
    if not _is_list(source) or _is_ucf101(source) or _names_folders(source) or _is_scored(source, kind):
        return None
    return Likeness("labels", "its lines are 'path label'")


def recognise_folders(source: Source, kind: Kind | None) -> Likeness | None:
    if not _is_list(source) or not _names_folders(source) or _is_scored(source, kind):
        return None
    return Likeness("labels", "its lines are 'folder frames label'")


def _is_scored(source: Source, kind: Kind | None) -> bool:
    """Five numbers a line are THUMOS14's detections unless labels are asked for."""
    return len(source.words) == 5 and kind != "labels"


def recognise_ucf101(source: Source, kind: Kind | None) -> Likeness | None:
    return Likeness("labels", "its lines are 'Class/video.avi'") if _is_ucf101(source) else None


def read_videos(source: Source, subset: str | None) -> VideoLabels:
    """The videos and class numbers of a list."""
    made = LabelList(source.path, numbered=True)
    for _, path, numbers in _lines(source):
        made.add(path, [str(number) for number in numbers])
    return made.finish(are_paths=True)


def read_folders(source: Source, subset: str | None) -> VideoLabels:
    """The folders, their frames and class numbers."""
    made = LabelList(source.path, numbered=True)
    for line, path, numbers in _lines(source):
        if len(numbers) < 2:
            raise DataError(
                f"{source.path}: line {line} has one number after the folder, not its frames and its label",
                fault="F39",
            )
        made.add(path, [str(number) for number in numbers[1:]], frames=numbers[0])
    return made.finish(are_paths=True)


def read_ucf101(source: Source, subset: str | None) -> VideoLabels:
    """The videos of a UCF101 split file; the folder is the class."""
    made = LabelList(source.path)
    for line, text in enumerate(source.lines, 1):
        if not text.strip():
            continue
        match = _UCF101.fullmatch(text)
        if match is None:
            raise DataError(f"{source.path}: line {line} is {text[:60]!r}, not 'Class/v_name.avi'", fault="F39")
        made.add(text.split()[0], [match[1]])
    return made.finish(are_paths=True)


def _lines(source: Source) -> Iterator[tuple[int, str, list[int]]]:
    for line, text in enumerate(source.lines, 1):
        if not text.strip():
            continue
        found = _parted(text)
        if found is None:
            raise DataError(
                f"{source.path}: line {line} is {text[:60]!r}, not a path and a class number; complete it", fault="F39"
            )
        yield line, *found


def _parted(line: str) -> tuple[str, list[int]] | None:
    """The path and the numbers of a line, None if it has not both.

    >>> _parted("my films/a 1.mp4 3 14"), _parted("a.mp4")
    (('my films/a 1.mp4', [3, 14]), None)
    """
    match = _TURNED.fullmatch(line[::-1])
    return match and (match[2][::-1], [int(word[::-1]) for word in match[1].split()[::-1]])


def write_videos(labels: VideoLabels, path: Path) -> None:
    """Write `path label ...`, or `folder frames label ...` if the frames are known."""
    if not labels.numbered:
        raise BadValue("a list of videos holds class numbers, and these labels are names; write JSON instead")
    of_video: list[list[str]] = [[] for _ in labels.videos]
    for video, label in zip(labels.video.tolist(), labels.label.tolist(), strict=True):
        of_video[video].append(labels.classes[label])
    lines = []
    for video, found in enumerate(of_video):
        place = labels.paths[video] if labels.paths else labels.videos[video]
        frames = [str(labels.frames[video])] if len(labels.frames) else []
        line = " ".join([place, *frames, *found])
        if not found or not (parted := _parted(line)) or parted[0] != place or place[0] in "{[(}]":
            raise BadValue(f"{place!r} with {len(found)} label(s) cannot be a line of a list; write JSON instead")
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
