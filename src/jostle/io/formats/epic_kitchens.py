"""EPIC-KITCHENS-100: a CSV of actions, `EPIC_100_validation.csv`, with times as clocks show them, classes as numbers.

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
from jostle.io.files.format import Format, Kind, Likeness, formats
from jostle.io.files.source import Source
from jostle.io.files.tabular import csv_rows
from jostle.io.files.truth_table import TruthTable, Wanted

Word = Literal["verb", "noun"]
_NEEDED = ("video_id", "start_timestamp", "stop_timestamp")
_CLOCK = re.compile(r"(\d{1,3}):([0-5]?\d):([0-5]?\d(?:\.\d{1,9})?)", re.ASCII)
_NUMBER = re.compile(r"\d{1,6}", re.ASCII)


def recognise(source: Source, kind: Kind | None) -> Likeness | None:
    if {*_NEEDED, "verb_class"} <= set(source.header):
        return Likeness("truth", "it has columns 'start_timestamp' and 'verb_class'")
    return None


def seconds_of(clock: str) -> float | str:
    """Seconds of a time of the form hours:minutes:seconds, or the text itself if it is none.

    >>> seconds_of("00:01:02.34"), seconds_of("12.5")
    (62.34, '12.5')
    """
    found = _CLOCK.fullmatch(clock.strip())
    return clock if found is None else int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])


def read(source: Source, wanted: Wanted, word: Word = "verb") -> Truth:
    """The actions of a table by the class number of their verb or noun.

    Raises:
        DataError: if a column is missing, or a class is no number.
    """
    header, column = source.header, f"{word}_class"
    lacking = [name for name in (*_NEEDED, column) if name not in header]
    if lacking:
        raise DataError(f"{source.path}: line 1: no column {lacking[0]!r}; the test set has no actions", fault="F28")
    video, start, stop, label = (header.index(name) for name in (*_NEEDED, column))
    table = TruthTable(source.path, wanted)
    for line, fields in csv_rows(source):
        number = fields[label].strip()
        if not fields[video] or not _NUMBER.fullmatch(number):
            raise DataError(f"{source.path}: line {line} names no video or no {column}; fill it in", fault="F45")
        times = [seconds_of(fields[start]), seconds_of(fields[stop])]
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
# After the other, so that a file is taken for verbs unless nouns are asked for.
formats.add(
    "epic-kitchens-nouns",
    Format(
        about="the same, by their nouns",
        recognise=recognise,
        read_truth=partial(read, word="noun"),
    ),
)
