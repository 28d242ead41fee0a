"""Classes of whole videos in ActivityNet's JSON: predictions whose entries have a label and a score, and no segment."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.prediction_table import NameIndex
from jostle.io.files.source import Source
from jostle.io.files.text import describe
from jostle.io.files.video_ids import quote_name
from jostle.io.formats.activitynet_results import duplicate_id_error, first_entry, group_by_video, results_of


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or "results" not in source.document or "database" in source.document:
        return None
    first = first_entry(source)
    if isinstance(first, dict) and "segment" not in first and "label" in first:
        return FormatMatch("labels", "the entries of its 'results' have no 'segment'")
    return FormatMatch("labels", "its 'results' are empty") if first is None and kind == "labels" else None


def read(source: Source, subset: str | None) -> VideoLabels:
    """Read scored classes, in the order of the file; integers are class numbers."""
    videos, labels = NameIndex(ids=True), NameIndex()
    rows: list[tuple[int, int, float]] = []
    kinds = set()
    for video, entries in results_of(source).items():
        before = len(videos.names)
        if videos[video] < before:
            raise duplicate_id_error(source, video)
        for i, entry in enumerate(entries):
            where = f"{source.path}: video {quote_name(video)}: entry {i}"
            if not isinstance(entry, dict) or "segment" in entry:
                raise DataError(f"{where} is not a label with a score; remove it, or its 'segment'", fault="F28")
            label, score = entry.get("label"), entry.get("score")
            if not (isinstance(label, str) and label.strip()) and (type(label) is not int or label < 0):
                raise DataError(f"{where} has {describe(label)} as its label, not a class", fault="F45")
            if isinstance(score, bool) or not isinstance(score, int | float):
                raise DataError(f"{where} has {describe(score)} as its score, not a number", fault="F41")
            if not math.isfinite(score):
                raise DataError(f"{where} has the score {score}, which is not finite; correct it", fault="F40")
            kinds.add(type(label))
            rows.append((videos[video], labels[str(label)], float(score)))
    if len(kinds) > 1:
        raise DataError(f"{source.path}: some labels are numbers and some are names; use one kind", fault="F45")
    table = np.array(rows, np.float64).reshape(-1, 3)
    return VideoLabels(
        videos=tuple(videos.names),
        classes=tuple(labels.names),
        video=table[:, 0].astype(np.int32),
        label=table[:, 1].astype(np.int32),
        score=table[:, 2].copy(),
        numbered=int in kinds,
    )


def write(labels: VideoLabels, path: Path) -> None:
    """Write classes of whole videos; the truth, which has no scores, gets the score 1."""
    write_text(path, _pieces(labels))


def _pieces(labels: VideoLabels) -> Iterator[str]:
    order, firsts = group_by_video(labels.video, len(labels.videos))
    names: list[str | int] = [int(name) if labels.numbered else name for name in labels.classes]
    yield '{"version": "jostle", "results": {'
    for video, spelled in enumerate(labels.videos):
        entries = [
            {"label": names[labels.label[row]], "score": 1.0 if labels.score is None else float(labels.score[row])}
            for row in order[firsts[video] : firsts[video + 1]].tolist()
        ]
        yield f"{',' if video else ''}\n{json.dumps(spelled)}: {json.dumps(entries)}"
    yield '\n}, "external_data": {}}\n'


formats.add(
    "activitynet-labels",
    Format(
        about="ActivityNet's JSON of predicted classes of whole videos",
        recognise=recognise,
        read_labels=read,
        write_labels=write,
        writes={"labels": (".json",)},
        holds=frozenset(("scores", "numbers")),
    ),
)
