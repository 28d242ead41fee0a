"""Average precision from matches: plain, or with DETAD's normalised precision, its minimum and its order of ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle.core.kernels import kernel, read_only
from jostle.core.types.columns import Flags, Floats, Indices, Ints
from jostle.metrics.alignment import Aligned
from jostle.metrics.matching import NONE, Matches, Ranking
from jostle.metrics.protocol import Protocol


def interpolated_ap(hits: Ints, positives: int, *, normaliser: float | None = None) -> float:
    """Return the area under the precision-recall curve, with precision raised to the best at any higher recall.

    At the i-th hit, of rank r (both from 1), recall is `i / positives` and precision `i / r`; with a normaliser N,
    precision is `R N / (R N + FP)`, which does not depend on how common the class is (DETAD).

    Args:
        hits: ranks of the right predictions, from 0, rising.

    >>> interpolated_ap(np.array([0, 2]), 2)
    0.8333333333333333
    """
    return float(interpolated_area(hits, positives, float(positives if normaliser is None else normaliser)))


def average_precisions(matches: Matches, protocol: Protocol) -> Floats:
    """Return the (C, T) average precision of each class at each threshold; NaN for classes without instances."""
    positives = np.bincount(matches.label, minlength=len(matches.ranking.first) - 1)
    if protocol.ap == "interpolated":
        return average_precision_table(instance_ranks(matches), matches.label, positives)
    table = np.full((len(positives), len(matches.tious)), np.nan)
    for label in np.flatnonzero(positives).tolist():
        excused = _excused(matches, label)
        for t in range(len(matches.tious)):
            table[label, t] = raw_ap(matches.hits(t, label), int(positives[label]), excused=excused)
    return table


def instance_ranks(matches: Matches) -> Ints:
    """Return the (T, I) rank, within its class, of the prediction matched to each instance; -1 for none."""
    places = matches.taken_by
    return np.where(places == NONE, NONE, places - matches.ranking.first[matches.label])


def average_precision_table(ranks: Ints, label: Indices, positives: Ints, *, normaliser: float | None = None) -> Floats:
    """Return the (C, T) average precision of each class at each threshold; NaN for classes without positives.

    Args:
        ranks: (T, I) as returned by `instance_ranks`.
        label: (I,) the class of each instance.
        positives: (C,) instances of each class that count.
        normaliser: DETAD's N, which makes it AP_N; None for plain AP.

    Two classes, three instances, one threshold; the first class is right at ranks 0 and 2:

    >>> average_precision_table(np.array([[2, 0, -1]]), np.array([0, 0, 1]), np.array([2, 1])).tolist()
    [[0.8333333333333333], [0.0]]
    """
    rising = np.array([row[np.lexsort((row, label))] for row in ranks], np.int64).reshape(ranks.shape)  # class by class
    first = np.searchsorted(np.sort(label), np.arange(len(positives) + 1))
    weights = positives.astype(np.float64) if normaliser is None else np.full(len(positives), float(normaliser))
    table = np.full((len(positives), len(ranks)), np.nan)
    _fill_table(rising, first, positives, weights, table)
    return table


def raw_ap(hits: Ints, positives: int, *, excused: Flags | None = None) -> float:
    """Return the sum of precisions at hits, divided by the number of instances.

    Args:
        excused: by rank, whether a prediction that is not a hit is ignored.

    >>> raw_ap(np.array([0, 2]), 2), raw_ap(np.array([0, 2]), 2, excused=np.array([False, True, False]))
    (0.8333333333333333, 1.0)
    """
    skipped: Ints = np.zeros(len(hits), np.int64)
    if excused is not None:
        missed = excused.copy()
        missed[hits] = False
        skipped = np.cumsum(missed, dtype=np.int64)[hits]
    counts = np.arange(1, len(hits) + 1)
    return float(np.sum(counts / (hits + 1 - skipped)) / positives)


def _excused(matches: Matches, label: int) -> Flags | None:
    if matches.excused is None:
        return None
    return matches.excused[matches.ranking.first[label] : matches.ranking.first[label + 1]]


def mean_over_classes(values: Floats) -> Floats:
    """Return (T,) means over the classes that have an instance.

    >>> mean_over_classes(np.array([[0.5, 0.1], [np.nan, np.nan], [1.0, 0.3]])).tolist()
    [0.75, 0.2]
    """
    present = ~np.isnan(values[:, 0]) if values.size else np.zeros(0, bool)
    means: Floats = values[present].mean(axis=0)
    return means


def precision_recall(matches: Matches, threshold: int, label: int) -> tuple[Floats, Floats]:
    """Return recall and precision after each counted prediction of a class, by descending score."""
    right = np.zeros(int(matches.ranking.first[label + 1] - matches.ranking.first[label]), bool)
    right[matches.hits(threshold, label)] = True
    excused = _excused(matches, label)
    hits = np.cumsum(right if excused is None else right[right | ~excused])
    positives = int(np.count_nonzero(matches.label == label))
    return hits / positives, hits / np.arange(1, len(hits) + 1)


def mean_curve(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return 101 levels of recall and the mean over classes of precision there, each class interpolated.

    >>> one = (np.array([0.5, 1.0]), np.array([1.0, 0.5]))
    >>> recall, precision = mean_curve([one])
    >>> precision[[0, 50, 51, 100]].tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    grid = np.linspace(0, 1, 101)
    precisions = np.zeros((len(curves), len(grid)))
    for row, (recall, precision) in zip(precisions, curves, strict=True):
        best = np.maximum.accumulate(precision[::-1])[::-1]
        index = np.searchsorted(recall, grid - 1e-12)
        reached = index < len(recall)
        row[reached] = best[index[reached]]
    return grid, precisions.mean(axis=0)


@kernel
def interpolated_area(hits: Any, positives: int, normaliser: float) -> float:
    """Compute `interpolated_ap` for use in other kernels."""
    best, area = 0.0, 0.0
    for i in range(len(hits) - 1, -1, -1):
        weight = (i + 1) / positives * normaliser
        false_alarms = hits[i] - i
        best = max(best, weight / (weight + false_alarms))
        area += best
    return area / positives if len(hits) else 0.0


@kernel
def _fill_table(rising: Any, first: Any, positives: Any, weights: Any, table: Any) -> None:
    hits = np.empty(rising.shape[1], np.int64)
    for c in range(len(positives)):
        if positives[c] == 0:
            continue
        for t in range(len(rising)):
            count = 0
            for k in range(first[c], first[c + 1]):
                rank = rising[t, k]
                if rank >= 0:
                    hits[count] = rank
                    count += 1
            table[c, t] = interpolated_area(hits[:count], positives[c], weights[c])


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
