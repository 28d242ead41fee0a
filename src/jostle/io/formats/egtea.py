"""EGTEA Gaze+: `action_labels.csv` of all sessions, separated by semicolons, with times in milliseconds.

`# Clip ID (Unique); Clip Prefix (Unique); Video Session; Starting Time (ms); Ending Time (ms); Action Label; Verb
Label; Noun Label(s)`.
"""

from __future__ import annotations

from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.tabular import require_number
from jostle.io.files.truth_table import TruthOptions, TruthTable

_COLUMNS = ("video session", "starting time (ms)", "ending time (ms)", "action label")


def _header(source: Source) -> list[str]:
    return [name.strip().lower() for name in ",".join(source.header).split(";")] if source.is_text else []


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if set(_COLUMNS) <= set(_header(source)):
        return FormatMatch("truth", "it has columns 'Video Session' and 'Action Label'")
    return None


def read(source: Source, options: TruthOptions) -> Truth:
    """Read the actions of every session."""
    header = _header(source)
    video, start, end, label = (header.index(name) for name in _COLUMNS)
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


formats.add("egtea", Format(about="EGTEA Gaze+'s table of actions in sessions", recognise=recognise, read_truth=read))
