"""What time goes to: each second is counted once, to what is innermost."""

from __future__ import annotations

import time

import pytest

from jostle.core.timing import Spent, spent_on, spent_so_far


def test_what_is_inside_is_not_counted_outside() -> None:
    before = spent_so_far()
    with spent_on("corrupting"):
        time.sleep(0.02)
        with spent_on("decoding"):
            time.sleep(0.05)
            with spent_on("model"):
                time.sleep(0.01)
        time.sleep(0.02)
    time.sleep(0.03)  # of nobody
    taken = spent_so_far() - before
    assert taken.decoding >= 0.05
    assert taken.corrupting >= 0.04
    assert taken.model >= 0.01
    again = spent_so_far() - before
    assert again == taken


def test_an_error_inside_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), spent_on("model"):
        1 / 0  # noqa: B018
    before = spent_so_far()
    time.sleep(0.01)
    assert spent_so_far() == before


@pytest.mark.parametrize(
    ("spent", "waited_for", "limit"),
    [
        (Spent(), True, None),
        (Spent(2, 1, 0), True, "decoding"),
        (Spent(1, 5, 1), True, "model"),  # workers that wait at all could do more
        (Spent(1, 15, 1), True, "corrupting"),
        (Spent(1, 5, 1), False, "corrupting"),
        (Spent(1, 5, 6), False, "model"),
    ],
)
def test_what_limits(spent: Spent, waited_for: bool, limit: str | None) -> None:
    assert spent.limit(waited_for=waited_for) == limit
