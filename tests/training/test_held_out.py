"""Held-out splits: names that are drawn, which must stay, and rows of one name."""

from __future__ import annotations

import pytest

from jostle.training.held_out import split

NAMES = [f"video{i:02d}" for i in range(10)]


@pytest.mark.parametrize(
    ("select", "seed", "held"),
    [(0.2, 3, [4, 7]), (0.34, 0, [2, 3, 4]), (0.01, 0, [4]), (0.5, 7, [2, 3, 5, 7, 8]), (0.0, 1, [])],
)
def test_published_runs_hold_out_the_same_names(select: float, seed: int, held: list[int]) -> None:
    learn, chosen = split(NAMES, select, seed)
    assert chosen == held
    assert sorted(learn + chosen) == list(range(10))
    backwards = split(NAMES[::-1], select, seed)[1]
    assert {NAMES[::-1][row] for row in backwards} == {NAMES[row] for row in held}


def test_rows_of_one_name_stay_together() -> None:
    learn, held = split([name for name in NAMES for _ in range(3)], 0.2, 3)
    assert held == [12, 13, 14, 21, 22, 23]
    assert len(learn) == 24
