"""Progress meter: silent for short work, lines without a terminal, a bar on a terminal."""

from __future__ import annotations

import io
import random

import pytest

from jostle.core import progress
from jostle.core.progress import Meter


class Clock:
    """Manually advanced replacement of the `time` module."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(progress, "time", fake)
    return fake


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        pytest.param([(1.9, 1, 2), (10, 2, 2)], [], id="short work prints nothing"),
        pytest.param(
            [(1, step, 40) for step in range(1, 31)],
            ["2 of 40, about 38 s left", "12 of 40, about 28 s left", "22 of 40, about 18 s left"],
            id="long work prints a line every ten seconds",
        ),
        pytest.param(
            [(10, 0, 100), (10, 50, 100), (10, 99, 100), (1, 0, 100), (10, 10, 100)],
            ["0 of 100", "50 of 100, about 10 s left", "99 of 100, about 0 s left", "10 of 100, about 90 s left"],
            id="a second pass is timed afresh",
        ),
    ],
)
def test_lines_without_a_terminal(clock: Clock, steps: list[tuple[float, int, int]], lines: list[str]) -> None:
    out = io.StringIO()
    with Meter("counting", out) as meter:
        for seconds, done, total in steps:
            clock.now += seconds
            meter.advance(done, total)
    assert out.getvalue().splitlines() == [f"counting: {line}" for line in lines]


def test_a_terminal_gets_a_bar(clock: Clock) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    state = random.getstate()  # rich numbers its links with the global generator
    with Meter("counting", out) as meter:
        for done in (1, 5, 2, 7):
            clock.now += 3
            meter.advance(done, 9)
    random.setstate(state)
    assert "counting" in out.getvalue()
    assert "7/9" in out.getvalue()
