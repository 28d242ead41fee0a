"""The search for breaking points, with judges whose breaking points are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from jostle.evaluation.probing.search import BreakingPoint, Judgement, Search, Trial

KINDS = {"kinetics-c/fog": (1, 2, 3, 4, 5)}
Loses = Callable[[Trial], bool]


def judge_by(loses: Loses, items: int = 1) -> Callable[[Sequence[Trial]], list[Judgement]]:
    def judge(trials: Sequence[Trial]) -> list[Judgement]:
        assert len(set(trials)) == len(trials)
        return [(np.full(items, 1.0 - loses(trial)), np.full(items, not loses(trial))) for trial in trials]

    return judge


def breaking_point(loses: Loses, span: tuple[int, int] = (10, 50), step: int = 1) -> BreakingPoint:
    (point,) = Search([span], np.array([True]), KINDS, judge_by(loses), step=step).breaking_points()
    return point


def covers(trial: Trial, frame: int) -> bool:
    return trial.first <= frame < trial.first + trial.frames


POINTS: dict[str, tuple[Loses, tuple[int, int], tuple[Any, ...]]] = {  # frames, position, severity, bracket
    "a decisive frame": (lambda trial: covers(trial, 33), (10, 50), (1, 33, 1, (0, 1))),
    "nothing": (lambda trial: False, (10, 50), (None, None, None, (40, None))),
    "a severity": (lambda trial: trial.severity >= 3 and covers(trial, 20), (10, 50), (1, 20, 3, (0, 1))),
    "an item of one frame": (lambda trial: trial.severity >= 2, (7, 8), (1, 7, 2, (0, 1))),
}


@pytest.mark.parametrize("name", POINTS)
def test_what_breaks_an_item_is_found(name: str) -> None:
    loses, span, expected = POINTS[name]
    point = breaking_point(loses, span)
    assert (point.frames, point.position, point.severity, point.bracket) == expected
    assert point.monotone


@pytest.mark.parametrize("length", [2, 3, 5, 7, 8, 13, 31, 40])
def test_the_length_that_breaks_an_item_is_exact(length: int) -> None:
    point = breaking_point(lambda trial: trial.frames >= length)
    assert (point.frames, point.bracket) == (length, (length - 1, length))


@pytest.mark.parametrize(
    "loses",
    [
        lambda trial: trial.severity in (2, 5) and covers(trial, 20),
        lambda trial: 3 <= trial.frames < 6,
        lambda trial: trial.frames == 1 and trial.first == 20,
    ],
)
def test_damage_that_is_not_monotone_is_reported(loses: Loses) -> None:
    assert not breaking_point(loses).monotone


def test_items_missed_in_the_clean_video_are_not_probed() -> None:
    tried: list[Trial] = []

    def judge(trials: Sequence[Trial]) -> list[Judgement]:
        tried.extend(trials)
        return judge_by(lambda trial: True, 2)(trials)

    points = Search([(0, 5), (5, 9)], np.array([False, True]), KINDS, judge).breaking_points()
    assert [point.item for point in points] == [1]
    assert all(5 <= trial.first < 9 for trial in tried)


def test_a_curve_has_the_score_at_every_position() -> None:
    search = Search([(2, 6), (4, 9)], np.array([True, True]), KINDS, judge_by(lambda trial: covers(trial, 4), 2))
    first, second = search.curves()
    assert first.positions == (2, 3, 4, 5)
    assert first.scores.tolist() == [1, 1, 0, 1]
    assert second.positions == (4, 5, 6, 7, 8)
    assert second.kept.tolist() == [False, True, True, True, True]
    assert search.trials == 7  # positions that both items have are tried once


def test_a_coarser_step_still_reaches_the_last_position() -> None:
    (curve,) = Search([(0, 10)], np.array([True]), KINDS, judge_by(lambda trial: False), step=4).curves()
    assert curve.positions == (0, 4, 8, 9)
