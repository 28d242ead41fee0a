"""Moments task: windows of videos that sentences describe, scored by R@1 or by QVHighlights' mAP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.language import MomentItem, MomentPrediction, MomentPredictions, MomentSet
from jostle.core.types.segments import Segments
from jostle.errors import BadValue
from jostle.evaluation.inference.language import BASELINES, VideoMoments
from jostle.evaluation.tasks.language import LanguageTask, Plain, failures_of
from jostle.evaluation.tasks.task import Item, action_pairs, task
from jostle.io.files.atomic import write_text
from jostle.metrics.moments import (
    RECALL_TIOU,
    MomentMetric,
    MomentScore,
    first_overlaps,
    items_by_length,
    score_moments,
)


@task("moments")
class MomentsTask(LanguageTask[VideoMoments]):
    """Task with scored windows for each sentence about a video; placements refer to the true windows."""

    loss_rule: ClassVar[str] = "the first window of the sentence overlaps every true one by less than the threshold"

    @cached_property
    def moments(self) -> MomentSet:
        """Sentences whose windows are known; others cannot be scored."""
        known = self.data.moments.located
        if not len(known):
            raise BadValue(f"{self.data.name}: no window is known for any sentence; give the annotations with them")
        return known

    @property
    def annotations(self) -> MomentSet:
        return self.moments

    @cached_property
    def actions(self) -> dict[str, Segments]:
        return self.moments.actions

    @property
    def fingerprint(self) -> str:
        return self.moments.fingerprint

    def write_truth(self, path: Path) -> None:
        rows = [asdict(item) for item in self.moments.items]
        actions = action_pairs(self.actions, self.videos)
        write_text(path, [json.dumps({"format": 1, "moments": rows, "actions": actions}, indent=0), "\n"])

    def to_rows(self, output: VideoMoments) -> list[Plain]:
        rows = [_to_plain(prediction) for prediction in output.predictions]
        for kind, predictions in output.baselines.items():
            for row, prediction in zip(rows, predictions, strict=True):
                row[kind] = _to_plain(prediction)
        if output.failed:
            rows[0]["failed"] = dict(output.failed)
        return rows

    def from_rows(self, rows: Sequence[Plain]) -> VideoMoments:
        baselines = {
            kind: tuple(parse_windows(row[kind]) for row in rows)
            for kind in BASELINES
            if all(kind in row for row in rows)
        }
        return VideoMoments(tuple(map(parse_windows, rows)), baselines, dict(rows[0].get("failed", {})))

    def to_predictions(self, outputs: Mapping[str, VideoMoments]) -> MomentPredictions:
        return self._prediction_set({name: one.predictions for name, one in outputs.items()})

    def read_predictions(self, path: Path, truth: MomentSet) -> MomentPredictions:
        return self.to_predictions(self.read(path)).checked(truth)

    def further_values(self, path: Path, truth: MomentSet, predictions: MomentPredictions) -> dict[str, Any]:
        if not isinstance(self.metric, MomentMetric) or self.cell_of(path).specs:
            return {}
        return {"baselines": self._baselines(self.metric, self.read(path), truth)}

    def items(self, name: str) -> Sequence[Item]:
        return tuple(_to_item(item) for item in self.by_video[name])

    def operating_threshold(self, outputs: Mapping[str, VideoMoments]) -> float:
        return RECALL_TIOU

    def judge(self, name: str, output: VideoMoments, threshold: float) -> tuple[Floats, Flags]:
        items = self.by_video[name]
        windows = {item.id: one for item, one in zip(items, output.predictions, strict=True)}
        overlaps = first_overlaps(windows, items)
        return overlaps, (overlaps >= threshold) & (overlaps > 0)

    def _baselines(
        self, metric: MomentMetric, outputs: Mapping[str, VideoMoments], moments: MomentSet
    ) -> dict[str, Any]:
        """Score the whole video as the window, and windows without the video and with one frame."""
        ends = {item.id: item.duration or _last_end(moments, item) for item in moments.items}
        failed = failures_of(outputs)
        found = {"whole_video": MomentPredictions({i: MomentPrediction(((0.0, end, 1.0),)) for i, end in ends.items()})}
        for kind in BASELINES:
            own = {name: one.baselines[kind] for name, one in outputs.items() if kind in one.baselines}
            found[kind] = self._prediction_set(own)
        return {
            kind: {"failed": failed[kind]} if kind in failed else _summary(metric, score_moments(windows, moments))
            for kind, windows in found.items()
        }

    def _prediction_set(self, outputs: Mapping[str, Sequence[MomentPrediction]]) -> MomentPredictions:
        pairs = ((self.by_video[name], predictions) for name, predictions in outputs.items())
        return MomentPredictions(
            {item.id: one for items, predictions in pairs for item, one in zip(items, predictions, strict=True)}
        )


def _summary(metric: MomentMetric, score: MomentScore) -> dict[str, Any]:
    value, interval = metric.of_score(score)
    return {"value": value, "interval": interval and list(interval), "mean_iou": score.mean_iou}


def _to_item(item: MomentItem) -> Item:
    """Return the part of a video from the first to the last of a sentence's windows, labelled by their length."""
    start, end = min(start for start, _ in item.windows), max(end for _, end in item.windows)
    return Item(next(iter(items_by_length([item])), "longer"), start, end, text=item.text)


def _last_end(moments: MomentSet, item: MomentItem) -> float:
    """Return the end of the last window of a video whose duration nobody says."""
    return max(end for one in moments.by_video[item.video] for _, end in one.windows)


def _to_plain(prediction: MomentPrediction) -> Plain:
    return {"windows": [list(window) for window in prediction.windows]}


def parse_windows(row: Plain) -> MomentPrediction:
    """Return the windows in a row of a predictions file; anything else raises KeyError, TypeError or ValueError."""
    windows = [tuple(map(float, window)) for window in row["windows"]]
    if any(len(window) != 3 for window in windows):
        raise ValueError("a window is malformed")
    return MomentPrediction(tuple((start, end, score) for start, end, score in windows))
