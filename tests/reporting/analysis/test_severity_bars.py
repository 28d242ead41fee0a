"""Bars of severities, which are printed after a run on terminals only."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.cli import console
from jostle.evaluation.results.run import Run
from jostle.features.extraction import Cost
from jostle.metrics.robustness import robustness
from jostle.reporting.analysis.severity_bars import BARS, severity_bars, sparkline

CELLS = {"kinetics-c/fog:1": 0.64, "kinetics-c/fog:3": 0.4, "black_frame:1": 0.8, "black_frame:3": 0.9}


def scores(clean: float = 0.8, cells: dict[str, float] | None = None) -> dict[str, Any]:
    values = robustness(clean, CELLS if cells is None else cells, percent=False).to_dict()
    more = {"benchmark": "b", "metric": "mAP@0.5", "beside": [], "clean_more": {}, "coverage": {"videos": 2, "of": 2}}
    return values | more | {"counted": {"cells": 4, "of": 4}}


@given(st.lists(st.floats(0, 1), min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_sparkline_is_monotonic(values: list[float], low: float, high: float) -> None:
    bars = [BARS.index(letter) for letter in sparkline(sorted(values), low, high)]
    assert bars == sorted(bars)
    assert len(bars) == len(values)


def test_one_line_per_corruption() -> None:
    lines = [line.split() for line in severity_bars(scores()).lines() + list(severity_bars(scores()).notes)]
    assert lines[1] == ["fog", "█▅▁", "52.00", "65.00"]
    assert lines[2] == ["black", "frame", "███", "85.00", "106.25"]
    assert lines[-1] == ["bars:", "clean", "and", "each", "severity,", "from", "40.00", "to", "80.00"]


def test_a_small_loss_looks_small() -> None:
    lines = severity_bars(scores(0.8, {"fog:1": 0.79, "fog:2": 0.78})).lines()
    assert lines[1].split()[1] == "███"


def test_clean_score_of_zero_and_no_cells() -> None:
    assert severity_bars(scores(0.0, {"fog:1": 0.0})).lines()[1].split() == ["fog", "██", "0.00", "n/a"]
    assert severity_bars(scores() | {"cells": []}).rows == ()


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "value", "drawn"),
    [("TERM", "xterm", True), ("NO_COLOR", "1", False), ("NO_COLOR", "", True), ("TERM", "dumb", False)],
)
def test_sparklines_depend_on_the_terminal(name: str, value: str, drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv(name, value)
    assert console.drawing() is drawn
    run = Run(Path("run"), scores() | {"model": "m"}, (), Cost(), Cost())
    console.give(run, drawn=(severity_bars(run.scores),))
    assert ("█▅▁" in sys.stdout.getvalue()) is drawn  # type: ignore[attr-defined]


def test_no_sparklines_without_unicode_or_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert not console.drawing()
    plain = Terminal()
    plain.encoding = "ascii"  # type: ignore[misc]
    monkeypatch.setattr(sys, "stdout", plain)
    assert not console.drawing()
    assert console.painted("a", "bad") == "a"
