"""The CSV of one video that BSN and BMN in mmaction2 write: `action,start,end,tmin,tmax` for each snippet.

Every row becomes a detection of the one class `action` from `tmin` to `tmax`, scored by `action`; times are in the
file's own unit, which is often a share of the video. The scores of starts and ends are left out.
"""

from __future__ import annotations

from jostle.core.types.predictions import Predictions
from jostle.io.files.format import Format, Kind, Likeness, formats
from jostle.io.files.prediction_table import finished_predictions
from jostle.io.files.source import Source
from jostle.io.files.tabular import csv_rows, needed_number
from jostle.io.files.video_ids import id_of

_COLUMNS = {"start": "tmin", "end": "tmax", "score": "action"}


def recognise(source: Source, kind: Kind | None) -> Likeness | None:
    if {"action", "tmin", "tmax"} <= set(source.header):
        return Likeness("predictions", "it has the columns 'action', 'tmin' and 'tmax'")
    return None


def read(source: Source, fix: bool) -> Predictions:
    """The snippets of the video that the file is named after."""
    places = {name: source.header.index(column) for name, column in _COLUMNS.items()}
    made: dict[str, list[float]] = {name: [] for name in ("video", "label", *places)}
    lines = []
    for line, fields in csv_rows(source):
        for name, place in places.items():
            made[name].append(needed_number(source, line, f"'{_COLUMNS[name]}'", fields[place]))
        made["video"].append(0)
        made["label"].append(0)
        lines.append(line)
    return finished_predictions(
        source.path,
        videos=[id_of(source.path.with_suffix("") if source.path.suffix == ".gz" else source.path)],
        labels=["action"],
        columns=made,
        where=lambda row: f"line {lines[row]}",
        fix=fix,
    )


formats.add(
    "proposal-csv",
    Format(about="mmaction2's CSV of the snippets of one video", recognise=recognise, read_predictions=read),
)
