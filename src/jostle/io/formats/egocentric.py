"""Ground truth of egocentric video: EPIC-KITCHENS-100, EGTEA Gaze+ and Ego4D Moments.

EPIC-KITCHENS-100: a CSV of actions (`EPIC_100_validation.csv`), with clock times and class numbers.

Columns: narration_id, participant_id, video_id, narration_timestamp, start_timestamp, stop_timestamp, start_frame,
stop_frame, narration, verb, verb_class, noun, noun_class, all_nouns, all_noun_classes. An action is a verb and a noun,
and detectors are tested on either.

EGTEA Gaze+: `action_labels.csv` of all sessions, separated by semicolons, with times in milliseconds:
`# Clip ID (Unique); Clip Prefix (Unique); Video Session; Starting Time (ms); Ending Time (ms); Action Label; Verb
Label; Noun Label(s)`.

Ego4D Moments Queries: `moments_val.json`, clips of long videos, each annotated by several people:
`{"videos": [{"video_uid", "split", "clips": [{"clip_uid", "video_start_sec", "video_end_sec", "annotations":
[{"labels": [{"primary", "label", "start_time", "end_time"}]}]}]}]}`; times count from the start of the clip. Only
labels that are `primary` count, as the challenge has it.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Literal

from jostle.core.formatting import describe
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows, require_number
from jostle.io.files.truth_table import TruthOptions, TruthTable

Word = Literal["verb", "noun"]
_REQUIRED = ("video_id", "start_timestamp", "stop_timestamp")
_CLOCK = re.compile(r"(\d{1,3}):([0-5]?\d):([0-5]?\d(?:\.\d{1,9})?)", re.ASCII)
_NUMBER = re.compile(r"\d{1,6}", re.ASCII)


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if {*_REQUIRED, "verb_class"} <= set(source.header):
        return FormatMatch("truth", "it has columns 'start_timestamp' and 'verb_class'")
    return None


def parse_clock(clock: str) -> float | str:
    """Convert hours:minutes:seconds to seconds; return the text itself if it is not a time.

    >>> parse_clock("00:01:02.34"), parse_clock("12.5")
    (62.34, '12.5')
    """
    match = _CLOCK.fullmatch(clock.strip())
    return clock if match is None else int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3])


def read(source: Source, options: TruthOptions, word: Word = "verb") -> Truth:
    """Read actions by the class number of their verb or noun.

    Raises:
        DataError: if a column is missing, or a class is not a number.
    """
    header, column = source.header, f"{word}_class"
    missing = [name for name in (*_REQUIRED, column) if name not in header]
    if missing:
        raise DataError(f"{source.path}: line 1: no column {missing[0]!r}; the test set has no actions", fault="F28")
    video, start, stop, label = (header.index(name) for name in (*_REQUIRED, column))
    table = TruthTable(source.path, options)
    for line, fields in read_csv_rows(source):
        number = fields[label].strip()
        if not fields[video] or not _NUMBER.fullmatch(number):
            raise DataError(f"{source.path}: line {line} names no video or no {column}; fill it in", fault="F45")
        times = [parse_clock(fields[start]), parse_clock(fields[stop])]
        table.add(table.row_video(fields[video]), str(int(number)), times, where=f"line {line}", label_id=int(number))
    return table.finish()


formats.add(
    "epic-kitchens",
    Format(
        about="EPIC-KITCHENS-100's CSV of actions, by their verbs",
        recognise=recognise,
        read_truth=partial(read, word="verb"),
    ),
)
# After the other, so that verbs are the default.
formats.add(
    "epic-kitchens-nouns",
    Format(about="the same, by their nouns", recognise=recognise, read_truth=partial(read, word="noun")),
)


_EGTEA_COLUMNS = ("video session", "starting time (ms)", "ending time (ms)", "action label")


def _egtea_header(source: Source) -> list[str]:
    return [name.strip().lower() for name in ",".join(source.header).split(";")] if source.is_text else []


def recognise_egtea(source: Source, kind: Kind | None) -> FormatMatch | None:
    if set(_EGTEA_COLUMNS) <= set(_egtea_header(source)):
        return FormatMatch("truth", "it has columns 'Video Session' and 'Action Label'")
    return None


def read_egtea(source: Source, options: TruthOptions) -> Truth:
    """Read the actions of every session."""
    header = _egtea_header(source)
    video, start, end, label = (header.index(name) for name in _EGTEA_COLUMNS)
    table = TruthTable(source.path, options)
    for line, text in enumerate(source.lines[1:], 2):
        fields = [field.strip() for field in text.split(";")]
        if not text.strip():
            continue
        if len(fields) != len(header):
            raise DataError(f"{source.path}: line {line} has {len(fields)} field(s), not {len(header)}", fault="F39")
        times = [require_number(source, line, header[column], fields[column]) / 1000 for column in (start, end)]
        table.add(table.row_video(fields[video]), fields[label], times, where=f"line {line}")
    return table.finish()


formats.add(
    "egtea",
    Format(about="EGTEA Gaze+'s table of actions in sessions", recognise=recognise_egtea, read_truth=read_egtea),
)


def recognise_moments(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json:
        return None
    videos = source.document.get("videos")
    first = videos[0] if isinstance(videos, list) and videos else None
    if isinstance(first, dict) and {"video_uid", "clips"} <= set(first):
        return FormatMatch("truth", "its 'videos' have 'clips'")
    return None


def read_moments(source: Source, options: TruthOptions) -> Truth:
    """Read the primary moments of every clip, whose id is its `clip_uid`."""
    table = TruthTable(source.path, options)
    for index, video in enumerate(_list(source, source.plain_document, "videos", "the file")):
        if not isinstance(video, dict):
            raise DataError(f"{source.path}: video {index} is {describe(video)}, not an object", fault="F28")
        for clip in _list(source, video, "clips", f"video {index}"):
            uid = clip.get("clip_uid") if isinstance(clip, dict) else None
            if not isinstance(uid, str) or not uid:
                raise DataError(f"{source.path}: a clip of video {index} has no 'clip_uid'", fault="F28")
            own = table.open_video(uid, subset=video.get("split"), duration=_clip_length(clip))
            for annotation in _list(source, clip, "annotations", f"clip {uid}"):
                labels = _list(source, annotation, "labels", f"clip {uid}") if isinstance(annotation, dict) else []
                for number, label in enumerate(labels):
                    if isinstance(label, dict) and label.get("primary"):
                        times = [label.get("start_time"), label.get("end_time")]
                        table.add(own, label.get("label"), times, where=f"label {number}")
    return table.finish()


def _clip_length(clip: dict[str, Any]) -> float | None:
    times = [clip.get(name) for name in ("video_start_sec", "video_end_sec")]
    if not all(isinstance(time, int | float) and not isinstance(time, bool) for time in times):
        return None
    return float(times[1]) - float(times[0])  # type: ignore[arg-type]


def _list(source: Source, entry: dict[str, Any], name: str, where: str) -> list[Any]:
    values = entry.get(name)
    if values is None:  # withheld, as in the test set
        return []
    if not isinstance(values, list):
        raise DataError(f"{source.path}: '{name}' of {where} is {describe(values)}, not a list", fault="F28")
    return values


formats.add(
    "ego4d-moments",
    Format(
        about="Ego4D's JSON of moments in clips, the primary ones", recognise=recognise_moments, read_truth=read_moments
    ),
)
