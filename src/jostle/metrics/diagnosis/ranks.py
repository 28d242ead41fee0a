"""Rank computations of DETAD besides average precision: minimum precision, means, and order of ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.core.kernels import kernel, read_only
from jostle.core.types.columns import Flags, Floats, Indices, Ints
from jostle.metrics.alignment import Aligned
from jostle.metrics.matching import Ranking


def precise_enough(ranks: Ints, label: Indices, positives: Ints, *, normaliser: float, floor: float) -> Flags:
    """Return (T, I) whether an instance is found at a rank with normalised precision above the minimum.

    Each hit is judged separately, by `R N / (R N + FP)` at its rank: one after a run of low precision may pass again.

    >>> ranks, label, positives = np.array([[0, 9, -1]]), np.array([0, 0, 0]), np.array([3])
    >>> precise_enough(ranks, label, positives, normaliser=3, floor=0.2).tolist()
    [[True, False, False]]
    """
    first = np.searchsorted(np.sort(label), np.arange(len(positives) + 1))
    rising = np.array([np.lexsort((row, label)) for row in ranks], np.int64).reshape(ranks.shape)  # class by class
    passed = np.zeros(ranks.shape, np.bool_)
    _judge(ranks, rising, first, positives, float(normaliser), float(floor), passed)
    return passed


def mean_of_table(table: Floats) -> float:
    """Return the mean of a (C, T) table over thresholds and classes with a positive: average mAP."""
    present = table[~np.isnan(table[:, 0])]
    return float(present.mean(axis=0).mean()) if len(present) else 0.0


def reverse_ties(ranking: Ranking, aligned: Aligned) -> Ints:
    """Return (n,) the place of each prediction if ties were in file order.

    Matching considers the later of two tied rows first. The profile, the top-10G and sensitivity, as published,
    consider the earlier one; reversing every run of ties gives that order without sorting again.
    """
    places: Ints = _turn_ties(ranking.order, ranking.first, read_only(aligned.score))
    return places


@kernel
def _turn_ties(order: Any, first: Any, score: Any) -> Any:
    turned = np.empty(len(order), np.int64)
    for c in range(len(first) - 1):
        opens = first[c]
        while opens < first[c + 1]:
            closes = opens + 1
            while closes < first[c + 1] and score[order[closes]] == score[order[opens]]:
                closes += 1
            for place in range(opens, closes):
                turned[place] = opens + closes - 1 - place
            opens = closes
    return turned


@kernel
def _judge(ranks: Any, rising: Any, first: Any, positives: Any, normaliser: float, floor: float, kept: Any) -> None:
    for c in range(len(positives)):
        for t in range(len(ranks)):
            found = 0
            for k in range(first[c], first[c + 1]):
                own = rising[t, k]
                rank = ranks[t, own]
                if rank >= 0:
                    found += 1
                    weight = found / positives[c] * normaliser
                    kept[t, own] = weight / (weight + (rank + 1 - found)) > floor
