"""Predictor of breaking points: runs a model on trials of a video until the search is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jostle.corruptions.engine.placement import frame_positions
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import Predictor, VideoJob, VideoResult
from jostle.evaluation.probing.search import BreakingPoint, FrailtyCurve, Judgement, Search, Span, Trial
from jostle.evaluation.recipes.recipe import CLEAN, CLEAN_CELL
from jostle.evaluation.tasks.task import Item, Task
from jostle.features.engine import Cost


@dataclass(frozen=True)
class ProbeSettings:
    """Settings that decide the breaking points of a model."""

    kinds: dict[str, tuple[int, ...]]  # severities of each corruption, ascending
    step: int  # frames between the positions of single damaged frames
    threshold: float  # score from which predictions count


@dataclass(frozen=True)
class ProbedItem:
    """An item of a video, and what the model made of it in the clean video."""

    item: int
    label: str
    first: int  # its first frame
    stop: int  # the frame after its last
    score: float
    kept: bool


@dataclass(frozen=True)
class ProbedCurve:
    """Frailty curve of an item; see `FrailtyCurve`."""

    item: int
    kind: str
    severity: int
    positions: tuple[int, ...]
    scores: tuple[float, ...]
    lost: tuple[int, ...]  # positions at which the item is lost


@dataclass(frozen=True)
class VideoProbe:
    """Breaking points and frailty curves of the items of one video."""

    format: int
    video: str
    frames: int  # length of the video
    fps: float
    trials: int
    items: tuple[ProbedItem, ...]
    breaking_points: tuple[BreakingPoint, ...]
    curves: tuple[ProbedCurve, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of its file."""
        return asdict(self)


@dataclass(frozen=True)
class ProbePredictor:
    """Predictor that searches the breaking points of a video with a model's own predictor."""

    predict: Predictor[Any]
    task: Task[Any]
    settings: ProbeSettings

    def __call__(self, job: VideoJob) -> VideoResult[VideoProbe]:
        """Return the probe of a video as its only output."""
        costs = [Cost(), Cost()]

        def outputs_of(trials: Sequence[Trial]) -> VideoResult[Any]:
            result = self.predict(replace(job, cells=(CLEAN_CELL, *(trial.cell for trial in trials))))
            costs[0], costs[1] = costs[0] + result.clean, costs[1] + result.cells
            return result

        def judge(trials: Sequence[Trial]) -> list[Judgement]:
            outputs = outputs_of(trials).outputs
            return [self._judge(job.name, outputs[trial.cell.name]) for trial in trials]

        items = self.task.items(job.name)
        scores, kept = self._judge(job.name, outputs_of(()).outputs[CLEAN])
        with open_footage(job) as footage:
            spans = [_span(item, footage.clean, footage.number_of) for item in items]
            frames, fps = len(footage.clean), float(footage.clean.fps)
        search = Search(spans, kept, self.settings.kinds, judge, step=self.settings.step)
        points, curves = search.breaking_points(), search.curves()
        probe = VideoProbe(
            1,
            job.name,
            frames,
            fps,
            search.trials,
            tuple(
                ProbedItem(i, item.label, *span, float(score), bool(own))
                for i, (item, span, score, own) in enumerate(zip(items, spans, scores, kept, strict=True))
            ),
            tuple(points),
            tuple(_stored(curve) for curve in curves),
        )
        return VideoResult({"probe": probe}, costs[0], costs[1])

    def _judge(self, name: str, output: Any) -> Judgement:
        return self.task.judge(name, output, self.settings.threshold)


def _span(item: Item, clean: Any, number_of: Callable[[str], int]) -> Span:
    """Return the frames of an item, at least one."""
    if item.frame:
        number = number_of(item.frame)
        return number, number + 1
    if item.start is None or item.end is None:
        return 0, len(clean)
    start, end = frame_positions(np.array([item.start, item.end]), clean.pts, clean.fps)
    first = min(max(int(np.floor(start)), 0), len(clean) - 1)
    return first, min(max(int(np.ceil(end)), first + 1), len(clean))


def _stored(curve: FrailtyCurve) -> ProbedCurve:
    lost = tuple(position for position, kept in zip(curve.positions, curve.kept, strict=True) if not kept)
    scores = tuple(float(score) for score in curve.scores)
    return ProbedCurve(curve.item, curve.kind, curve.severity, curve.positions, scores, lost)
