"""Predictor of breaking points: runs a model on trials of a video until the search is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from jostle.corruptions.engine.placement import frame_positions
from jostle.evaluation.inference.footage import open_footage, open_video
from jostle.evaluation.inference.jobs import Predictor, VideoJob, VideoResult
from jostle.evaluation.probing.search import BreakingPoint, FrailtyCurve, Judgement, Search, Span, Trial
from jostle.evaluation.recipes.recipe import CLEAN_CELL
from jostle.evaluation.tasks.task import Item, Task
from jostle.features.extraction import Cost


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
    text: str = ""  # question or sentence, where the item is one


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


@dataclass
class Costs:
    """Amount of computation of a probe: for clean videos, and for its trials besides."""

    clean: Cost = field(default_factory=Cost)
    cells: Cost = field(default_factory=Cost)


@dataclass(frozen=True)
class ProbePredictor:
    """Predictor that searches the breaking points of a video with a model's own predictor."""

    predict: Predictor[Any]
    task: Task[Any, Any]
    settings: ProbeSettings

    def __call__(self, job: VideoJob) -> VideoResult[VideoProbe]:
        """Return the probe of a video as its only output."""
        costs = Costs()
        items, spans = self.task.items(job.name), self.spans(job)
        ((scores, kept),) = self.judge(job, (), costs, clean=True)
        search = Search(
            spans, kept, self.settings.kinds, partial(self.judge, job, costs=costs), step=self.settings.step
        )
        points, curves = search.breaking_points(), search.curves()
        with open_video(job) as reader:
            frames, fps = len(reader), float(reader.fps)
        probe = VideoProbe(
            1,
            job.name,
            frames,
            fps,
            search.trials,
            tuple(
                ProbedItem(i, item.label, *span, float(score), bool(own), item.text)
                for i, (item, span, score, own) in enumerate(zip(items, spans, scores, kept, strict=True))
            ),
            tuple(points),
            tuple(_stored(curve) for curve in curves),
        )
        return VideoResult({"probe": probe}, costs.clean, costs.cells)

    def spans(self, job: VideoJob) -> list[Span]:
        """Return the frames of each item of a video."""
        with open_footage(job) as footage:
            return [_span(item, footage.clean, footage.number_of) for item in self.task.items(job.name)]

    def judge(
        self, job: VideoJob, trials: Sequence[Trial], costs: Costs | None = None, *, clean: bool = False
    ) -> list[Judgement]:
        """Judge the items of a video under each of some trials; with `clean`, in the clean video first."""
        cells = (CLEAN_CELL, *(trial.cell for trial in trials))
        result = self.predict(replace(job, cells=cells, baselines=False))
        if costs is not None:
            costs.clean, costs.cells = costs.clean + result.clean, costs.cells + result.cells
        judged = cells if clean else cells[1:]
        threshold = self.settings.threshold
        return [self.task.judge(job.name, result.outputs[cell.name], threshold) for cell in judged]


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
