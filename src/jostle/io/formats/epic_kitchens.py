"""EPIC-KITCHENS-100: a CSV of actions (`EPIC_100_validation.csv`), with clock times and class numbers.

Columns: narration_id, participant_id, video_id, narration_timestamp, start_timestamp, stop_timestamp, start_frame,
stop_frame, narration, verb, verb_class, noun, noun_class, all_nouns, all_noun_classes. An action is a verb and a noun,
and detectors are tested on either.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Literal

from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows
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
    Format(
        about="the same, by their nouns",
        recognise=recognise,
        read_truth=partial(read, word="noun"),
    ),
)
