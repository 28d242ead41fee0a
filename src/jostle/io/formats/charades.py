"""Charades: a CSV a subset, one line a video, whose `actions` are written "c092 11.90 21.20;c147 0.00 12.60"."""

from __future__ import annotations

import re

from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.format import Format, Kind, Likeness, formats
from jostle.io.files.source import Source
from jostle.io.files.tabular import csv_rows, number_in
from jostle.io.files.truth_table import TruthTable, Wanted

_ACTION = re.compile(r"c\d{1,4}", re.ASCII)


def recognise(source: Source, kind: Kind | None) -> Likeness | None:
    if {"id", "actions", "length"} <= set(source.header):
        return Likeness("truth", "it has columns 'actions' and 'length'")
    return None


def read(source: Source, wanted: Wanted) -> Truth:
    """The actions of every video; one without any is listed too.

    Actions may end a little after the video, as their authors wrote them, so lengths are not held against them.
    """
    header = source.header
    video, actions = header.index("id"), header.index("actions")
    table = TruthTable(source.path, wanted)
    for line, fields in csv_rows(source):
        if not fields[video]:
            raise DataError(f"{source.path}: line {line} names no video; fill it in", fault="F45")
        own = table.row_video(fields[video])
        for place, action in enumerate(filter(None, map(str.strip, fields[actions].split(";"))), 1):
            words = action.split()
            where = f"action {place} of line {line}"
            if len(words) != 3 or not _ACTION.fullmatch(words[0]):
                table.refuse(own, f"{where} is {action[:40]!r}, not a class, a start and an end", fault="F39")
                continue
            table.add(own, words[0], [number_in(words[1]), number_in(words[2])], where=where)
    return table.finish()


formats.add("charades", Format(about="Charades' CSV of videos and their actions", recognise=recognise, read_truth=read))
