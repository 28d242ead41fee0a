"""Evidence for a condition: its value and an interval that keeps its level on few videos too.

A draw weighs the videos at random, with one more that nobody has seen. That video is at its worst for the lower end of
an interval and at its best for the upper one, so that what so few videos could not show is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.errors import DataError, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import class_scores
from jostle.evaluation.results.comparison import Standing
from jostle.evaluation.results.run_analysis import DRAWS, RunAnalysis
from jostle.gate.budget import Condition
from jostle.gate.gaps import Scope
from jostle.metrics.bootstrap import unseen_weights
from jostle.metrics.proportion import clopper_pearson

# Draws beyond each end of an interval: at least, and where a draw costs nothing but a weighted mean.
TAIL_DRAWS, MANY_TAIL_DRAWS = 10, 250
MOST_WEIGHTS = 10_000_000  # draws times videos, from which on there are no more than needed
# mAP of few videos is too high, by about n**-0.5. Draws are worth half as many videos and exceed the value by
# (2**0.5 - 1) of its own excess; an end is moved by both.
BIAS = 2 + math.sqrt(2)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Value of a condition's metric, and what its intervals are made of."""

    value: float  # of the run; against a reference, the run less the reference
    run: float
    reference: float | None
    videos: int  # that it was measured on
    drawn: Floats  # the value in each draw
    low: Floats  # the same with an unseen video at its worst, and at its best
    high: Floats
    trials: int | None = None  # answers, one a video, where the value is the share of right ones in one cell
    averaged: bool = True  # whether scores are means over items of videos, so that draws are not biased
    same: bool = False  # whether both runs predict the same to the last bit

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the interval of a level, or None if the draws do not give one."""
        if self.same:
            return self.value, self.value
        if self.trials is not None:
            return clopper_pearson(round(self.value * self.trials), self.trials, level)
        tail = math.floor((1 - level) / 2 * (len(self.low) + 1))
        if tail < 1:
            return None
        low, high = np.sort(self.low)[tail - 1], np.sort(self.high)[-tail]
        if not self.averaged:
            excess = float(np.nanmean(self.drawn)) - self.value
            low, high = low - BIAS * max(excess, 0.0), high + BIAS * max(-excess, 0.0)
        if self.reference is None:
            low = max(low, 0.0)  # no score is less
        return (float(low), float(high)) if np.isfinite([low, high]).all() else None

    def method(self, level: float) -> str:
        """Return how the interval of a level is obtained, in words."""
        if self.same:
            return f"same predictions on {self.videos} videos"
        if self.trials is not None:
            return f"exact interval of {100 * level:.5g} % over {self.videos} videos"
        return f"interval of {100 * level:.5g} % from {len(self.low)} draws of {self.videos} videos and an unseen one"


def enough_draws(levels: Sequence[float], shares: int, videos: int, *, averaged: bool) -> int:
    """Return how many draws leave some beyond each end of the widest interval.

    Args:
        levels: of the intervals, whose probability of error is divided into so many `shares`.
        averaged: whether scores are means over items of videos, of which a draw costs nothing but a weighted mean.
    """
    tail = min((1 - level) / 2 for level in levels) / shares
    needed = max(DRAWS, math.ceil(TAIL_DRAWS / tail))
    if not averaged:
        return needed
    return max(needed, min(math.ceil(MANY_TAIL_DRAWS / tail), MOST_WEIGHTS // max(videos, 1)))


def videos_needed(videos: int, value: float, interval: tuple[float, float], limit: float) -> int | None:
    """Return about how many videos decide a condition if its value stays as it is; None if it is at the limit.

    An end comes closer to the value by the square root of the number of videos.

    >>> videos_needed(20, 0.8, (0.6, 0.9), 0.7)
    80
    """
    distance = abs(value - limit)
    reach = value - interval[0] if value >= limit else interval[1] - value
    if distance < 1e-9 or reach <= 0:
        return None
    return max(math.ceil(videos * (reach / distance) ** 2 - 1e-6), videos + 1)


@dataclass(frozen=True, eq=False)
class _Metric:
    """A metric of one run: its value, its value in each draw, and with an unseen video at its worst and best."""

    value: float
    drawn: Floats
    low: Floats
    high: Floats
    trials: int | None
    videos: int


def measure_condition(
    condition: Condition, scope: Scope, analyses: Sequence[RunAnalysis], seed: int, *, same: bool = False
) -> Evidence:
    """Measure the metric of a condition.

    Args:
        scope: the cells that the gate is about.
        analyses: of the run, and of the reference run where there is one, with an unseen video.
        seed: of the draws in the analyses.
        same: whether the predictions of both runs are the same to the last bit.

    Raises:
        DataError: if the metric has no value in a run.
    """
    averaged = bool(analyses[0].record.metric.mean_over)
    cells = scope.of_condition(condition)
    own, *others = (_measure_metric(condition.metric, cells, analysis, seed) for analysis in analyses)
    if not condition.against_reference:
        return Evidence(own.value, own.value, None, own.videos, own.drawn, own.low, own.high, own.trials, averaged)
    other = others[0]
    return Evidence(
        own.value - other.value,
        own.value,
        other.value,
        own.videos,
        own.drawn - other.drawn,
        own.low - other.high,
        own.high - other.low,
        averaged=averaged,
        same=same,
    )


def _measure_metric(name: str, cells: Sequence[str], analysis: RunAnalysis, seed: int) -> _Metric:
    """Return a metric of a run in all its draws."""
    kind, _, part = name.partition(":")
    if kind == "class":
        return _measure_class(analysis, part, cells, seed)
    videos, empty = len(analysis.videos), np.zeros(0)
    worst, best = analysis.ends if analysis.ends is not None else (None, None)

    def mean(table: Floats | None, chosen: Sequence[str]) -> Floats:
        at = analysis.columns(chosen)
        return empty if table is None or not len(table) else np.asarray(table[:, at].mean(axis=1))

    tables = (analysis.drawn, worst, best)
    if kind in ("clean", "cell"):
        value = _finite(analysis.of(cells[0]).value, name)
        drawn, low, high = (mean(table, cells) for table in tables)
        return _Metric(value, drawn, low, high, analysis.trials, videos)
    if kind != "relative_robustness":
        value = _finite(analysis.corrupted(cells).value, name)
        drawn, low, high = (mean(table, cells) for table in tables)
        return _Metric(value, drawn, low, high, None, videos)
    if Standing.of(analysis).guesses:
        raise DataError(
            f"{analysis.record.folder}: its clean score is at chance level, so that relative robustness means "
            "nothing; check clean and mean_corrupted",
            fault="F150",
        )
    corrupted = [cell for cell in cells if cell != CLEAN]
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn, low, high = (
            mean(above, corrupted) / mean(below, (CLEAN,))
            for above, below in zip(tables, (analysis.drawn, best, worst), strict=True)
        )
    return _Metric(_finite(analysis.relative(corrupted).value, name), drawn, low, high, None, videos)


def _measure_class(analysis: RunAnalysis, name: str, cells: Sequence[str], seed: int) -> _Metric:
    """Return the mean corrupted score of one class."""
    if name not in analysis.classes:
        raise UnknownName("class of the run", name, analysis.classes)
    weights = unseen_weights(analysis.videos, len(analysis.drawn), seed)
    scores = [class_scores(analysis.record, cell, analysis.videos, weights, name) for cell in cells]
    value = _finite(float(np.mean([one.value for one in scores])), f"class:{name}")
    ends = [one.ends or (np.zeros(0), np.zeros(0)) for one in scores]
    drawn, low, high = (
        np.mean(draws, axis=0)
        for draws in ([one.drawn for one in scores], [one[0] for one in ends], [one[1] for one in ends])
    )
    return _Metric(value, drawn, low, high, None, scores[0].videos)


def _finite(value: float | None, name: str) -> float:
    if value is None or not math.isfinite(value):
        raise DataError(f"{name} has no value in this run; check another metric", fault="F150")
    return value
