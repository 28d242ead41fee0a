"""The CSV of one video that BSN and BMN in mmaction2 write: `action,start,end,tmin,tmax` for each snippet.

Every row becomes a detection of the one class `action` from `tmin` to `tmax`, scored by `action`; times are in the
file's own unit, which is often a share of the video. The scores of starts and ends are left out.
"""

from __future__ import annotations

from jostle.core.types.predictions import Predictions
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.prediction_table import build_predictions
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows, require_number
from jostle.io.files.video_ids import id_of

_COLUMNS = {"start": "tmin", "end": "tmax", "score": "action"}


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if {"action", "tmin", "tmax"} <= set(source.header):
        return FormatMatch("predictions", "it has the columns 'action', 'tmin' and 'tmax'")
    return None


def read(source: Source, fix: bool) -> Predictions:
    """Read the snippets of the video that the file is named after."""
    indices = {name: source.header.index(column) for name, column in _COLUMNS.items()}
    columns: dict[str, list[float]] = {name: [] for name in ("video", "label", *indices)}
    lines = []
    for line, fields in read_csv_rows(source):
        for name, index in indices.items():
            columns[name].append(require_number(source, line, f"'{_COLUMNS[name]}'", fields[index]))
        columns["video"].append(0)
        columns["label"].append(0)
        lines.append(line)
    return build_predictions(
        source.path,
        videos=[id_of(source.path.with_suffix("") if source.path.suffix == ".gz" else source.path)],
        labels=["action"],
        columns=columns,
        where=lambda row: f"line {lines[row]}",
        fix=fix,
    )


formats.add(
    "proposal-csv",
    Format(about="mmaction2's CSV of the snippets of one video", recognise=recognise, read_predictions=read),
)
