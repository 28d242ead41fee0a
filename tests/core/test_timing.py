"""What time goes to: each second is counted once, to what is innermost."""

from __future__ import annotations

import time

import pytest

from jostle.core.timing import StageTimes, elapsed_stage_times, measure_stage


def test_what_is_inside_is_not_counted_outside() -> None:
    before = elapsed_stage_times()
    with measure_stage("corrupting"):
        time.sleep(0.02)
        with measure_stage("decoding"):
            time.sleep(0.05)
            with measure_stage("model"):
                time.sleep(0.01)
        time.sleep(0.02)
    time.sleep(0.03)  # of nobody
    taken = elapsed_stage_times() - before
    assert taken.decoding >= 0.05
    assert taken.corrupting >= 0.04
    assert taken.model >= 0.01
    again = elapsed_stage_times() - before
    assert again == taken


def test_an_error_inside_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), measure_stage("model"):
        1 / 0  # noqa: B018
    before = elapsed_stage_times()
    time.sleep(0.01)
    assert elapsed_stage_times() == before


@pytest.mark.parametrize(
    ("spent", "waited_for", "limit"),
    [
        (StageTimes(), True, None),
        (StageTimes(2, 1, 0), True, "decoding"),
        (StageTimes(1, 5, 1), True, "model"),  # workers that wait at all could do more
        (StageTimes(1, 15, 1), True, "corrupting"),
        (StageTimes(1, 5, 1), False, "corrupting"),
        (StageTimes(1, 5, 6), False, "model"),
    ],
)
def test_what_limits(spent: StageTimes, waited_for: bool, limit: str | None) -> None:
    assert spent.limit(waited_for=waited_for) == limit
