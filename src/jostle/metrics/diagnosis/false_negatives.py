"""False negatives: instances that no prediction finds with sufficient precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from jostle.core.types.columns import Flags, Floats, Ints
from jostle.metrics.diagnosis.characteristics import Characteristic
from jostle.metrics.matching import NONE, Matches
from jostle.metrics.mean_ap import average_precision_table, instance_ranks, mean_of_table, precise_enough

MIN_PRECISION = 0.05  # a match at a normalised precision of at most this does not count

Rates = dict[str, float | None]


@dataclass(frozen=True, eq=False)
class FalseNegatives:
    """Shares of instances that are missed, means over thresholds."""

    overall: float  # of all instances
    buckets: Mapping[str, Rates]  # of those in each bucket, by characteristic; None for a bucket without an instance
    share: Mapping[str, Mapping[str, float]]  # what part of all instances is in each bucket
    # As `buckets`, for two characteristics together (`coverage,length`: `XS,S`); only those that occur.
    pairs: Mapping[str, Mapping[str, float]]
    pair_share: Mapping[str, Mapping[str, float]]  # what part of all instances that is
    missed: Flags  # (T, I) whether an instance is missed at a threshold
    average_map_n: float  # average mAP_N without the matches below the minimum precision


def count_misses(
    matches: Matches, characteristics: Mapping[str, Characteristic], *, positives: Ints, normaliser: float
) -> FalseNegatives:
    """Count missed instances, overall and by bucket.

    An instance is missed at a threshold if no prediction takes it, or the one that does stands where normalised
    precision is at most 0.05. The rate of a bucket is the mean over thresholds of missed / instances.

    Args:
        positives: (C,) instances of each class.
    """
    ranks = instance_ranks(matches)
    is_found = precise_enough(ranks, matches.label, positives, normaliser=normaliser, floor=MIN_PRECISION)
    left = average_precision_table(np.where(is_found, ranks, NONE), matches.label, positives, normaliser=normaliser)
    missed = ~is_found
    share_missed = missed.mean(axis=0)  # (I,) at what part of the thresholds
    buckets: dict[str, Rates] = {}
    share: dict[str, dict[str, float]] = {}
    for name, characteristic in characteristics.items():
        counts, rates = _rates(characteristic.bucket.astype(np.int64), share_missed, len(characteristic.labels))
        buckets[name] = {
            label: float(rate) if count else None
            for label, count, rate in zip(characteristic.labels, counts, rates, strict=True)
        }
        share[name] = {
            label: float(count / len(share_missed)) for label, count in zip(characteristic.labels, counts, strict=True)
        }
    pairs: dict[str, dict[str, float]] = {}
    pair_share: dict[str, dict[str, float]] = {}
    for one, other in combinations(characteristics.values(), 2):
        both = f"{one.name},{other.name}"
        code = np.where(
            (one.bucket >= 0) & (other.bucket >= 0),
            one.bucket.astype(np.int64) * len(other.labels) + other.bucket,
            NONE,
        )
        names = [f"{a},{b}" for a in one.labels for b in other.labels]
        counts, rates = _rates(code, share_missed, len(names))
        pairs[both] = {names[i]: float(rates[i]) for i in np.flatnonzero(counts)}
        pair_share[both] = {names[i]: float(counts[i] / len(share_missed)) for i in np.flatnonzero(counts)}
    return FalseNegatives(
        float(missed.mean(axis=1).mean()), buckets, share, pairs, pair_share, missed, mean_of_table(left)
    )


def _rates(code: Ints, share_missed: Floats, size: int) -> tuple[Ints, Floats]:
    """Return the number of instances of each code, and the share that is missed (0 for none)."""
    known = code >= 0
    counts = np.bincount(code[known], minlength=size)
    missed = np.bincount(code[known], weights=share_missed[known], minlength=size)
    return counts, missed / np.maximum(counts, 1)
