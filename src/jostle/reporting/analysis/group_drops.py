"""Accuracy lost on shifted data by group of videos, such as the kinds of shift of UCF101-DS, paired by class.

A group holds some classes more often than others, so its accuracy is held against that of the first run with each class
as frequent as in the group. Classes are drawn for the intervals: videos of one class are alike, and both runs have
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.errors import DataError, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import estimate, processed_videos
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows
from jostle.io.files.video_ids import id_of
from jostle.metrics.accuracy import TopKAccuracy, videos_within_top_k
from jostle.metrics.bootstrap import video_weights

FILE_COLUMNS = ("filename", "file_name", "video", "path", "video_id")
GROUP_COLUMN = "category"
ALL = "all"
Interval = tuple[float, float]


@dataclass(frozen=True)
class GroupDrop:
    """Clean accuracy of two runs on one group of the second's videos."""

    group: str
    videos: int  # of the second run
    classes: int
    first: float  # accuracy of the first run, its classes as frequent as in the group
    second: float
    difference: float | None  # second less first
    interval: Interval | None  # of the difference, over classes


def read_groups(source: str | Path) -> dict[str, str]:
    """Read the group of each video from a CSV file, by its column `category` or `FILE.csv:COLUMN`.

    Raises:
        DataError: if the file names no videos.
        UnknownName: if it lacks the column.
    """
    path, column = Path(source), GROUP_COLUMN
    if not path.exists() and ":" in str(source):
        name, _, column = str(source).rpartition(":")
        path = Path(name)
    table = Source(path)
    named = next((name for name in FILE_COLUMNS if name in table.header), None)
    if named is None:
        raise DataError(
            f"{path}: line 1 has none of the columns {', '.join(FILE_COLUMNS)}, which name the videos", fault="F28"
        )
    if column not in table.header:
        raise UnknownName(f"column of {path}", column, table.header)
    file, group = table.header.index(named), table.header.index(column)
    return {id_of(fields[file].strip()): fields[group].strip() for _, fields in read_csv_rows(table)}


def group_drops(
    first: RunRecord, second: RunRecord, groups: Mapping[str, str], *, draws: int, seed: int = 0
) -> tuple[GroupDrop, ...]:
    """Return what the second run loses of the first's clean accuracy, over all videos and by group.

    Args:
        groups: group of each video of the second run; videos without one count in `all` only.
        draws: of the classes, for the intervals.

    Raises:
        DataError: if the runs are not of recognition, or no class or no video is shared.
    """
    known = _right_by_class(first)
    rows = [(groups.get(id_of(video)), name, right) for video, name, right in _answers(second) if name in known]
    if not rows:
        raise DataError(f"{first.folder} and {second.folder} have no class in common")
    found = sorted({group for group, _, _ in rows if group})
    if not found:
        raise DataError(f"{second.folder}: the list of groups names none of its videos, as {_answers(second)[0][0]!r}")
    return tuple(_drop(group, rows, known, draws, seed) for group in (ALL, *found))


def _drop(
    group: str, rows: list[tuple[str | None, str, bool]], known: Mapping[str, float], draws: int, seed: int
) -> GroupDrop:
    own = [(name, right) for one, name, right in rows if group in (ALL, one)]
    classes = sorted({name for name, _ in own})
    index = {name: i for i, name in enumerate(classes)}
    places = np.array([index[name] for name, _ in own])
    count = np.bincount(places, minlength=len(classes)).astype(np.float64)
    hits = np.bincount(places, [right for _, right in own], len(classes))
    matched = count * [known[name] for name in classes]
    weights = video_weights(classes, draws, seed)
    drawn = weights @ (hits - matched) / (weights @ count)
    before, after = float(matched.sum() / count.sum()), float(hits.sum() / count.sum())
    gap = estimate(after - before, drawn)
    return GroupDrop(group, len(own), len(classes), before, after, gap.value, gap.interval)


def _answers(record: RunRecord) -> list[tuple[str, str, bool]]:
    """Return the video, its class and whether the answer is right, for every clean answer of a run."""
    if not isinstance(record.metric, TopKAccuracy):
        raise DataError(f"{record.folder}: only accuracies of recognisers are compared by group")
    videos = processed_videos(record)
    labels = record.annotations.of_videos(videos)
    answers = videos_within_top_k(labels, predictions_of(record, CLEAN, videos), record.about.content.k or 1)
    right = dict(zip(videos, answers.tolist(), strict=True))
    pairs = zip(labels.video.tolist(), labels.label.tolist(), strict=True)
    return [(labels.videos[video], labels.classes[label], right[labels.videos[video]]) for video, label in pairs]


def _right_by_class(record: RunRecord) -> dict[str, float]:
    by_class: dict[str, list[bool]] = {}
    for _, name, right in _answers(record):
        by_class.setdefault(name, []).append(right)
    return {name: float(np.mean(answers)) for name, answers in by_class.items()}
