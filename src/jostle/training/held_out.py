"""Data that are held out of training, to choose the epoch by."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.core.random import rng_for
from jostle.errors import BadValue

TEST_NAMES = ("test", "testing")


def check_select(select: str | float, train: str, learned: str) -> None:
    """Raise if the epoch would be chosen by data that is learned from or tested on.

    Args:
        learned: what a share is held out of, in words.
    """
    if not isinstance(select, str):
        if not 0 <= select < 1:
            raise BadValue(f"data: select is a subset or a share from 0 to below 1, got {select}")
        return
    if select.casefold() in TEST_NAMES:
        raise BadValue(
            f"data: select = {select!r} would choose the model on the test set; name another subset, or hold out a "
            f"share of the {learned}, as in select = 0.1"
        )
    if select.casefold() == train.casefold():
        raise BadValue(f"data: select and train are both {train!r}; a model is not chosen by what it learned")


def split(names: Sequence[str], select: float, seed: int) -> tuple[list[int], list[int]]:
    """Return the rows to learn from, and those of a share of the names that is held out; at least one, if not of 0.

    The draw depends on the names and the seed, not on their order. Rows of one name stay together.

    >>> split(["b", "a", "b", "c"], 0.3, seed=0)
    ([0, 2, 3], [1])
    """
    by_name = sorted(set(names))
    order = rng_for(seed, "held out", *by_name).permutation(len(by_name))
    held = {by_name[i] for i in order[: max(1, round(select * len(by_name)))]} if select else set()
    rows = range(len(names))
    return [row for row in rows if names[row] not in held], [row for row in rows if names[row] in held]
