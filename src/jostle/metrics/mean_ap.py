"""Average precision from matches: plain, or with DETAD's normalised precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.compiled import kernel
from jostle.metrics.matching import NONE, Matches
from jostle.metrics.protocol import Protocol
from jostle.types.columns import Flags, Floats, Ints


def interpolated_ap(hits: Ints, positives: int, *, normaliser: float | None = None) -> float:
    """Area under precision over recall, precision raised to the best at any higher recall.

    At the i-th hit, of rank r (both from 1), recall is `i / positives` and precision `i / r`; with a normaliser N,
    precision is `R N / (R N + FP)`, which does not depend on how common the class is (DETAD).

    Args:
        hits: ranks of the right predictions, from 0, rising.
        positives: instances of the class.

    >>> interpolated_ap(np.array([0, 2]), 2)
    0.8333333333333333
    """
    return float(interpolated_area(hits, positives, float(positives if normaliser is None else normaliser)))


def average_precisions(matches: Matches, protocol: Protocol) -> Floats:
    """(C, T) average precision of each class at each threshold; NaN for a class without an instance."""
    first = matches.ranking.first
    counts = np.bincount(matches.label, minlength=len(first) - 1)
    made = np.full((len(first) - 1, len(matches.tious)), np.nan)
    for label in np.flatnonzero(counts):
        for t in range(len(matches.tious)):
            hits = matches.hits(t, int(label))
            if protocol.ap == "interpolated":
                made[label, t] = interpolated_ap(hits, int(counts[label]))
            else:
                made[label, t] = raw_ap(hits, int(counts[label]), excused=_excused(matches, int(label)))
    return made


def raw_ap(hits: Ints, positives: int, *, excused: Flags | None = None) -> float:
    """Precision at each hit, summed and divided by the number of instances.

    Args:
        excused: by rank, whether a prediction that is no hit goes uncounted.

    >>> raw_ap(np.array([0, 2]), 2), raw_ap(np.array([0, 2]), 2, excused=np.array([False, True, False]))
    (0.8333333333333333, 1.0)
    """
    skipped: Ints = np.zeros(len(hits), np.int64)
    if excused is not None:
        missed = excused.copy()
        missed[hits] = False
        skipped = np.cumsum(missed, dtype=np.int64)[hits]
    found = np.arange(1, len(hits) + 1)
    return float(np.sum(found / (hits + 1 - skipped)) / positives)


def _excused(matches: Matches, label: int) -> Flags | None:
    if matches.excused is None:
        return None
    return matches.excused[matches.ranking.first[label] : matches.ranking.first[label + 1]]


def mean_over_classes(values: Floats) -> Floats:
    """(T,) means over the classes that have an instance.

    >>> mean_over_classes(np.array([[0.5, 0.1], [np.nan, np.nan], [1.0, 0.3]])).tolist()
    [0.75, 0.2]
    """
    present = ~np.isnan(values[:, 0]) if values.size else np.zeros(0, bool)
    means: Floats = values[present].mean(axis=0)
    return means


def precision_recall(matches: Matches, threshold: int, label: int) -> tuple[Floats, Floats]:
    """Recall and precision after each prediction of a class, the surest first."""
    count = int(matches.ranking.first[label + 1] - matches.ranking.first[label])
    right = np.zeros(count)
    right[matches.hits(threshold, label)] = 1
    found = np.cumsum(right)
    positives = int(np.count_nonzero(matches.label == label))
    return found / positives, found / np.arange(1, count + 1)


def recalls(matches: Matches) -> Floats:
    """(C, T) share of the instances of each class that some prediction found."""
    classes = len(matches.ranking.first) - 1
    counts = np.bincount(matches.label, minlength=classes)
    found = [np.bincount(matches.label[row != NONE], minlength=classes) for row in matches.taken_by]
    with np.errstate(invalid="ignore"):
        shares: Floats = np.stack(found, axis=1) / counts[:, None]
    return shares


@kernel
def interpolated_area(hits: Any, positives: int, normaliser: float) -> float:
    """What `interpolated_ap` says, for other kernels to call."""
    best, area = 0.0, 0.0
    for i in range(len(hits) - 1, -1, -1):
        weight = (i + 1) / positives * normaliser
        false_alarms = hits[i] - i
        best = max(best, weight / (weight + false_alarms))
        area += best
    return area / positives if len(hits) else 0.0
