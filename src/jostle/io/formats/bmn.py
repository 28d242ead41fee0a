"""Ground truth as BMN and its heirs keep it: entries by video id at the top, `duration_second` in each."""

from __future__ import annotations

from jostle.core.types.truth import Truth
from jostle.io.files.format import Format, Kind, Likeness, formats
from jostle.io.files.source import Source
from jostle.io.files.truth_table import Wanted
from jostle.io.formats.activitynet import read_database


def recognise(source: Source, kind: Kind | None) -> Likeness | None:
    if not source.is_json or not source.document:
        return None
    first = next(iter(source.document.values()))
    if isinstance(first, dict) and "annotations" in first and "duration_second" in first:
        return Likeness("truth", "its entries have 'annotations'")
    return None


def read(source: Source, wanted: Wanted) -> Truth:
    return read_database(source, wanted, source.plain_document, duration="duration_second")


formats.add("bmn", Format(about="BMN's JSON of ground truth, without subsets", recognise=recognise, read_truth=read))
