"""Moments task: windows of videos that sentences describe, scored by R@1 or by QVHighlights' mAP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.schema import Mismatch
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.language import RANGES, MomentItem, MomentPrediction, MomentPredictions, MomentSet
from jostle.core.types.segments import Segments
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.outputs import BASELINES, VideoAnswers
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.actions import ActionSpans, check_spans
from jostle.evaluation.tasks.language import LanguageTask, Plain, failures_of
from jostle.evaluation.tasks.task import Item, task
from jostle.evaluation.tasks.views import TimelineView
from jostle.evaluation.tasks.words import Words

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig
    from jostle.metrics.moments import MomentMetric, MomentScore

_LENGTHS = ", ".join(f"{length} up to {high:g} s" for length, (_, high) in RANGES.items())


@dataclass(frozen=True)
class DescribedVideos:
    """Content of truth.json: sentences about videos."""

    moments: tuple[MomentItem, ...]
    actions: ActionSpans | None = None  # the windows of each video, each once

    def __post_init__(self) -> None:
        check_spans(self.actions)
        if not self.moments:
            raise Mismatch("must not be empty").under("moments")

    def annotations(self) -> MomentSet:
        """Return the sentences whose windows are known."""
        return MomentSet(self.moments).located


@task("moments")
class MomentsTask(LanguageTask[MomentSet, MomentPrediction]):
    """Task with scored windows for each sentence about a video; placements refer to the true windows."""

    words = Words(
        title="Moments described by sentences",
        tag="video-moment-retrieval",
        has_pipeline=False,
        predictions="JSON with `windows` by the id of a sentence, each start, end and score, times in seconds",
        group="length",
        long_group="length of moment",
        groups_note=f"By the length of the true windows: {_LENGTHS}.",
        interval_note=", each with all its sentences",
        loss_rule="the first window of the sentence overlaps every true one by less than the threshold",
    )
    reads = MomentSet
    stored = DescribedVideos

    @classmethod
    def annotations_in(cls, data: Dataset) -> MomentSet:
        known = data.moments.located
        if not len(known):
            raise BadValue(f"{data.name}: no window is known for any sentence; give the annotations with them")
        return known

    @classmethod
    def actions_in(cls, data: Dataset, annotations: MomentSet) -> Mapping[str, Segments]:
        return annotations.actions

    @classmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        from jostle.evaluation.tasks.moments.model import build_moment_model

        return build_moment_model(recipe, config, device)

    def answer_to_plain(self, answer: MomentPrediction) -> Plain:
        return {"windows": [list(window) for window in answer.windows]}

    def answer_from_plain(self, row: Plain) -> MomentPrediction:
        windows = [tuple(map(float, window)) for window in row["windows"]]
        if any(len(window) != 3 for window in windows):
            raise ValueError("a window is malformed")
        return MomentPrediction(tuple((start, end, score) for start, end, score in windows))

    def join_answers(self, answers: Mapping[str, MomentPrediction]) -> MomentPredictions:
        return MomentPredictions(answers)

    def answers_in(self, predictions: MomentPredictions) -> Mapping[str, MomentPrediction]:
        return predictions.predictions

    def further_values(self, path: Path, predictions: MomentPredictions, names: Sequence[str]) -> dict[str, Any]:
        from jostle.metrics.moments import MomentMetric

        if not isinstance(self.metric, MomentMetric) or self.cell_of(path).specs:
            return {}
        return {"baselines": self._baselines(self.metric, self.read(path), self.truth_of(names))}

    def items(self, name: str) -> Sequence[Item]:
        return tuple(_to_item(item) for item in self.by_video[name])

    def operating_threshold(self, outputs: Mapping[str, VideoAnswers[MomentPrediction]]) -> float:
        from jostle.metrics.moments import RECALL_TIOU

        return RECALL_TIOU

    def judge(self, name: str, output: VideoAnswers[MomentPrediction], threshold: float) -> tuple[Floats, Flags]:
        from jostle.metrics.moments import first_overlaps

        items = self.by_video[name]
        windows = {item.id: one for item, one in zip(items, output.answers, strict=True)}
        overlaps = first_overlaps(windows, items)
        return overlaps, (overlaps >= threshold) & (overlaps > 0)

    def _baselines(
        self, metric: MomentMetric, outputs: Mapping[str, VideoAnswers[MomentPrediction]], moments: MomentSet
    ) -> dict[str, Any]:
        """Score the whole video as the window, and windows without the video and with one frame."""
        from jostle.metrics.moments import score_moments

        ends = {item.id: item.duration or _last_end(moments, item) for item in moments.items}
        failed = failures_of(outputs)
        found = {"whole_video": MomentPredictions({i: MomentPrediction(((0.0, end, 1.0),)) for i, end in ends.items()})}
        for kind in BASELINES:
            own = {name: one.baselines[kind] for name, one in outputs.items() if kind in one.baselines}
            found[kind] = self.by_item(own)
        return {
            kind: {"failed": failed[kind]} if kind in failed else _summary(metric, score_moments(windows, moments))
            for kind, windows in found.items()
        }

    def view(
        self,
        name: str,
        clean: MomentPredictions,
        corrupted: MomentPredictions,
        *,
        tiou: float | None = None,
        brief: bool = False,
    ) -> TimelineView:
        """Return the windows along a video; in brief the first of each sentence."""
        from jostle.evaluation.tasks.moments.view import draw_windows
        from jostle.metrics.moments import RECALL_TIOU

        sides, overlap = (clean.predictions, corrupted.predictions), RECALL_TIOU if tiou is None else tiou
        return draw_windows(name, self.by_video[name], sides, overlap, most=1 if brief else None)


def _summary(metric: MomentMetric, score: MomentScore) -> dict[str, Any]:
    value, interval = metric.of_score(score)
    return {"value": value, "interval": interval and list(interval), "mean_iou": score.mean_iou}


def _to_item(item: MomentItem) -> Item:
    """Return the part of a video from the first to the last of a sentence's windows, labelled by their length."""
    from jostle.metrics.moments import items_by_length

    start, end = min(start for start, _ in item.windows), max(end for _, end in item.windows)
    return Item(next(iter(items_by_length([item])), "longer"), start, end, text=item.text)


def _last_end(moments: MomentSet, item: MomentItem) -> float:
    """Return the end of the last window of a video whose duration nobody says."""
    return max(end for one in moments.by_video[item.video] for _, end in one.windows)
