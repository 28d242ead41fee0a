"""Charades: a CSV per subset with a line per video, whose `actions` are "c092 11.90 21.20;c147 0.00 12.60"."""

from __future__ import annotations

import re

from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.tabular import parse_number, read_csv_rows
from jostle.io.files.truth_table import TruthOptions, TruthTable

_ACTION = re.compile(r"c\d{1,4}", re.ASCII)


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if {"id", "actions", "length"} <= set(source.header):
        return FormatMatch("truth", "it has columns 'actions' and 'length'")
    return None


def read(source: Source, options: TruthOptions) -> Truth:
    """Read the actions of every video; videos without actions are listed too.

    Actions may end slightly after the video in the official files, so durations are not checked.
    """
    header = source.header
    video, actions = header.index("id"), header.index("actions")
    table = TruthTable(source.path, options)
    for line, fields in read_csv_rows(source):
        if not fields[video]:
            raise DataError(f"{source.path}: line {line} names no video; fill it in", fault="F45")
        own = table.row_video(fields[video])
        for number, action in enumerate(filter(None, map(str.strip, fields[actions].split(";"))), 1):
            words = action.split()
            where = f"action {number} of line {line}"
            if len(words) != 3 or not _ACTION.fullmatch(words[0]):
                table.refuse(own, f"{where} is {action[:40]!r}, not a class, a start and an end", fault="F39")
                continue
            table.add(own, words[0], [parse_number(words[1]), parse_number(words[2])], where=where)
    return table.finish()


formats.add("charades", Format(about="Charades' CSV of videos and their actions", recognise=recognise, read_truth=read))
