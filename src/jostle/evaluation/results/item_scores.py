"""Scores of single questions and sentences in a cell, of the videos they are about, and of their types and lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.core.types.columns import Floats
from jostle.core.types.language import AnswerSet, MomentItem, MomentPrediction, QuestionItem
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import MEASURES
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.tasks.moments import RECALL_TIOU
from jostle.metrics.answers import correct_answers
from jostle.metrics.moments import RANGES, average_precisions, first_overlaps, items_by_length

ITEMS = {"questions": "questions", "moments": "sentences"}  # of a video, by task


@dataclass(frozen=True, eq=False)
class ItemScores:
    """Scores of the items of some videos, summed by video; a mean over items is the value of a cell."""

    total: Floats  # (videos,) sum of the scores
    count: Floats  # (videos,) number of items

    @classmethod
    def of(cls, videos: Sequence[str], owners: Sequence[str], values: Floats) -> ItemScores:
        """Sum the values of items; `owners` has the video of each."""
        place = {name: i for i, name in enumerate(videos)}
        index = np.array([place[name] for name in owners], np.int64)
        total = np.bincount(index, values, len(videos)).astype(np.float64)
        return cls(total, np.bincount(index, minlength=len(videos)).astype(np.float64))

    @property
    def mean(self) -> float:
        """Mean over all items, NaN without any."""
        return float(self.total.sum() / self.count.sum()) if self.count.any() else float("nan")

    @property
    def by_video(self) -> Floats:
        """(videos,) mean over the items of each video, NaN for one without any."""
        return np.where(self.count > 0, self.total / np.maximum(self.count, 1), np.nan)


def described_videos(record: RunRecord, cell: str) -> tuple[str, ...]:
    """Return the videos that a cell has answers or windows for, in the order of the annotations."""
    return _present(record, _predictions(record, cell))


def _predictions(record: RunRecord, cell: str) -> Mapping[str, Any]:
    """Return the answers or windows of a cell by the ids of items."""
    return record.answers(cell).answers if record.task == "questions" else record.windows(cell).predictions


def _present(record: RunRecord, predictions: Mapping[str, Any]) -> tuple[str, ...]:
    by_video: Mapping[str, Sequence[QuestionItem | MomentItem]]
    by_video = record.questions.by_video if record.task == "questions" else record.moments.by_video
    return tuple(video for video, items in by_video.items() if items[0].id in predictions)


def group_names(record: RunRecord) -> tuple[str, ...]:
    """Return the types of questions, or the lengths of true windows, in the order of `item_scores`."""
    if record.task == "questions":
        return tuple(dict.fromkeys(item.kind for item in record.questions.items if item.kind))
    return tuple(name for name in RANGES if name in items_by_length(record.moments.items))


def item_scores(record: RunRecord, cell: str, videos: Sequence[str]) -> tuple[ItemScores, dict[str, ItemScores]]:
    """Score the items of some videos in a cell, all together and by their types or lengths.

    Questions are right or wrong; sentences have the overlap at which R@1 counts them, or their average precision.

    Raises:
        DataError: if the cell lacks one of the videos.
    """
    predictions = _predictions(record, cell)
    known = set(_present(record, predictions))
    if lacking := [name for name in videos if name not in known]:
        raise DataError(
            f"{record.folder}: {cell} lacks {len(lacking)} videos, as {lacking[0]!r}; run again, which adds them"
        )
    if record.task == "questions":
        answers, items = AnswerSet(predictions), record.questions.of_videos(videos).items
        groups: dict[str, Sequence[QuestionItem]] = {
            name: [item for item in items if item.kind == name] for name in group_names(record)
        }
        return _scores(videos, items, correct_answers(answers, items).astype(float)), {
            name: _scores(videos, group, correct_answers(answers, group).astype(float))
            for name, group in groups.items()
        }
    sentences = record.moments.of_videos(videos).items
    by_map = record.about.content.metric == "moment_map"
    lengths = items_by_length(sentences)
    return _scores(videos, sentences, _window_values(predictions, sentences, by_map=by_map)), {
        name: _scores(videos, group, _window_values(predictions, group, by_map=by_map))
        for name in group_names(record)
        for group in [lengths.get(name, [])]
    }


def is_mean_over_items(record: RunRecord) -> bool:
    """Whether the value of a cell is the mean of `item_scores`; not with a metric of one's own."""
    return record.about.content.metric in MEASURES[record.task]


def is_share(record: RunRecord) -> bool:
    """Whether items are right or wrong, so that the value of a cell is a share of them."""
    return is_mean_over_items(record) and record.about.content.metric != "moment_map"


def _scores(videos: Sequence[str], items: Sequence[QuestionItem | MomentItem], values: Floats) -> ItemScores:
    return ItemScores.of(videos, [item.video for item in items], values)


def _window_values(windows: Mapping[str, MomentPrediction], items: Sequence[MomentItem], *, by_map: bool) -> Floats:
    if not items:
        return np.zeros(0)
    if by_map:
        return np.asarray(average_precisions(windows, items).mean(axis=1), np.float64)
    return np.asarray(first_overlaps(windows, items) >= RECALL_TIOU, np.float64)
