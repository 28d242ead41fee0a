"""`thumos14.json` as ActionFormer, TriDet and TemporalMaxer use it: ActivityNet's JSON with rates and class numbers."""

from __future__ import annotations

from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.formats import activitynet


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    entries = activitynet.entries_of(source)
    if not activitynet.is_thumos14(entries) or activitynet.is_recognition(entries):
        return None
    return FormatMatch("truth", "it has 'database'")


formats.add(
    "thumos14",
    Format(
        about="ActivityNet's JSON with 'fps', 'label_id' and segments in frames, as ActionFormer reads it",
        recognise=recognise,
        read_truth=activitynet.read,
        read_labels=activitynet.read_labels,
        write_truth=activitynet.write_thumos14,
        holds=activitynet.HOLDS,
    ),
)
