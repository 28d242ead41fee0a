"""What DETAD asks of ranks besides average precision: a floor of precision, a mean, ties in file order."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.core.kernels import fixed, kernel
from jostle.core.types.columns import Flags, Floats, Indices, Ints
from jostle.metrics.alignment import Aligned
from jostle.metrics.matching import Ranking


def precise_enough(ranks: Ints, label: Indices, positives: Ints, *, normaliser: float, floor: float) -> Flags:
    """(T, I) whether an instance is found by a prediction up to which normalised precision is above the floor.

    Each hit is judged alone, by `R N / (R N + FP)` at its rank: one after a stretch of low precision may pass again.

    >>> ranks, label, positives = np.array([[0, 9, -1]]), np.array([0, 0, 0]), np.array([3])
    >>> precise_enough(ranks, label, positives, normaliser=3, floor=0.2).tolist()
    [[True, False, False]]
    """
    first = np.searchsorted(np.sort(label), np.arange(len(positives) + 1))
    rising = np.array([np.lexsort((row, label)) for row in ranks], np.int64).reshape(ranks.shape)  # class by class
    kept = np.zeros(ranks.shape, np.bool_)
    _judge(ranks, rising, first, positives, float(normaliser), float(floor), kept)
    return kept


def mean_of(table: Floats) -> float:
    """Mean of a (C, T) table over classes that have a positive and over thresholds: average-mAP."""
    present = table[~np.isnan(table[:, 0])]
    return float(present.mean(axis=0).mean()) if len(present) else 0.0


def ties_turned(ranking: Ranking, aligned: Aligned) -> Ints:
    """(n,) the place each prediction would have if ties were in file order.

    Matching takes the later of two tied rows first. The profile, the top-10G and sensitivity, as published, take the
    earlier one; turning every run of ties round gives that order without sorting again.
    """
    turned: Ints = _turn_ties(ranking.order, ranking.first, fixed(aligned.score))
    return turned


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
