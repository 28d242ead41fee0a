"""Ground truth in BMN's JSON: entries by video id at the top, each with `duration_second`."""

from __future__ import annotations

from jostle.core.types.truth import Truth
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.truth_table import TruthOptions
from jostle.io.formats.activitynet import read_database


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or not source.document:
        return None
    first = next(iter(source.document.values()))
    if isinstance(first, dict) and "annotations" in first and "duration_second" in first:
        return FormatMatch("truth", "its entries have 'annotations'")
    return None


def read(source: Source, options: TruthOptions) -> Truth:
    return read_database(source, options, source.plain_document, duration="duration_second")


formats.add("bmn", Format(about="BMN's JSON of ground truth, without subsets", recognise=recognise, read_truth=read))
