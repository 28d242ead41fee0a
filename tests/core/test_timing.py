"""Stage times: each second counts once, for the innermost stage."""

from __future__ import annotations

import time

import pytest

from jostle.core.timing import StageTimes, elapsed_stage_times, measure_stage


def test_inner_stages_are_not_counted_in_outer_ones() -> None:
    before = elapsed_stage_times()
    with measure_stage("corrupting"):
        time.sleep(0.02)
        with measure_stage("decoding"):
            time.sleep(0.05)
            with measure_stage("model"):
                time.sleep(0.01)
        time.sleep(0.02)
    time.sleep(0.03)  # outside of any stage
    times = elapsed_stage_times() - before
    assert times.decoding >= 0.05
    assert times.corrupting >= 0.04
    assert times.model >= 0.01
    later = elapsed_stage_times() - before
    assert later == times


def test_an_error_ends_the_stage() -> None:
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
        (StageTimes(1, 5, 1), True, "model"),  # waiting workers have capacity left
        (StageTimes(1, 15, 1), True, "corrupting"),
        (StageTimes(1, 5, 1), False, "corrupting"),
        (StageTimes(1, 5, 6), False, "model"),
    ],
)
def test_the_bottleneck_is_identified(spent: StageTimes, waited_for: bool, limit: str | None) -> None:
    assert spent.limit(waited_for=waited_for) == limit
