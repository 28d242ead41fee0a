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


def test_short_work_prints_nothing(clock: Clock) -> None:
    out = io.StringIO()
    with Meter("counting", out) as meter:
        clock.now += 1.9
        meter.advance(1, 2)
        clock.now += 10
        meter.advance(2, 2)
    assert out.getvalue() == ""


def test_long_work_prints_a_line_every_ten_seconds(clock: Clock) -> None:
    out = io.StringIO()
    with Meter("counting", out) as meter:
        for step in range(1, 31):
            clock.now += 1
            meter.advance(step, 40)
    assert out.getvalue().splitlines() == [
        "counting: 2 of 40, about 38 s left",
        "counting: 12 of 40, about 28 s left",
        "counting: 22 of 40, about 18 s left",
    ]


def test_a_second_pass_is_timed_afresh(clock: Clock) -> None:
    out = io.StringIO()
    with Meter("counting", out) as meter:
        for done in (0, 50, 99):
            clock.now += 10
            meter.advance(done, 100)
        clock.now += 1
        meter.advance(0, 100)
        clock.now += 10
        meter.advance(10, 100)
    assert out.getvalue().splitlines()[0] == "counting: 0 of 100"
    assert out.getvalue().splitlines()[-1] == "counting: 10 of 100, about 90 s left"


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
