"""Sensitivity: how well instances of each kind are found, with the false alarms of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Flags, Ints
from jostle.metrics.diagnosis.characteristics import Characteristic
from jostle.metrics.diagnosis.ranks import mean_of
from jostle.metrics.matching import NONE, Matches
from jostle.metrics.mean_ap import average_precision_table, ranks_of

_MIXED = -2  # took instances of different buckets at different thresholds


@dataclass(frozen=True)
class Extent:
    """The smallest and the largest value over the buckets that hold an instance.

    Attributes:
        relative_min: `min` divided by the base; None where the base is 0.
    """

    min: float
    max: float
    relative_min: float | None
    relative_max: float | None

    @property
    def sensitivity(self) -> float:
        """The paper's word for the largest less the smallest."""
        return self.max - self.min

    def impact(self, base: float) -> float:
        """The paper's word for what the best bucket has over the base."""
        return self.max - base


@dataclass(frozen=True)
class Sensitivity:
    """Average mAP_N of the instances of each bucket.

    Attributes:
        base: average mAP_N of all instances.
        buckets: by characteristic and bucket; None for a bucket without an instance.
    """

    base: float
    buckets: Mapping[str, Mapping[str, float | None]]

    @property
    def profile(self) -> dict[str, Extent]:
        """By characteristic, how far its buckets lie apart."""
        made = {}
        for name, buckets in self.buckets.items():
            values = [value for value in buckets.values() if value is not None]
            if values:
                low, high = min(values), max(values)
                relative = (low / self.base, high / self.base) if self.base else (None, None)
                made[name] = Extent(low, high, *relative)
        return made


def measure_sensitivity(
    matches: Matches,
    turned: Ints,
    characteristics: Mapping[str, Characteristic],
    *,
    classes: int,
    normaliser: float,
    base: float,
) -> Sensitivity:
    """Average mAP_N of each bucket.

    For bucket b and every class with an instance in it: predictions that took an instance outside b, at whatever
    threshold, go; the rest is ranked and AP_N computed with the instances in b as positives. False alarms stay.

    Args:
        matches: of all predictions.
        turned: places with ties in file order, see `ranks.ties_turned`.
        classes: how many the ground truth names.
    """
    rivals = _Rivals(matches, turned)
    values = {}
    for name, found in characteristics.items():
        bucket = found.bucket.astype(np.int64)
        own = rivals.own_bucket(bucket)
        values[name] = {
            label: _value(rivals, bucket == b, own != b, classes=classes, normaliser=normaliser)
            for b, label in enumerate(found.labels)
        }
    return Sensitivity(base, values)


class _Rivals:
    """Predictions that took an instance at some threshold: no other is ever removed from a list.

    Attributes:
        rank: (M,) rank of each within its class, ties in file order; they are in rising order class by class.
        opens: (M,) the first of them that has the same class.
        taken: (T, I) which of them took an instance, or -1.
    """

    def __init__(self, matches: Matches, turned: Ints) -> None:
        ranks = ranks_of(matches)
        found = ranks != NONE
        first = matches.ranking.first[np.broadcast_to(matches.label, ranks.shape)[found]]
        places, at, inverse = np.unique(turned[matches.taken_by[found]], return_index=True, return_inverse=True)
        self.label = matches.label
        self.rank: Ints = places - first[at]
        self.opens: Ints = np.searchsorted(places, first[at])
        self.taken: Ints = np.full(ranks.shape, NONE, np.int64)
        self.taken[found] = inverse

    def own_bucket(self, bucket: Ints) -> Ints:
        """(M,) the one bucket of all instances that a prediction took, or a negative number."""
        found = self.taken != NONE
        which, of = self.taken[found], np.broadcast_to(bucket, self.taken.shape)[found]
        lowest = np.full(len(self.rank), np.iinfo(np.int64).max)
        highest = np.full(len(self.rank), np.iinfo(np.int64).min)
        np.minimum.at(lowest, which, of)
        np.maximum.at(highest, which, of)
        return np.where(lowest == highest, lowest, _MIXED)


def _value(rivals: _Rivals, inside: Flags, gone: Flags, *, classes: int, normaliser: float) -> float | None:
    """Average mAP_N of the instances inside a bucket, with the rivals that are gone left out of the lists."""
    if not inside.any():
        return None
    before = np.concatenate([[0], np.cumsum(gone)])
    rank = rivals.rank - (before[:-1] - before[rivals.opens])
    rank[gone] = NONE
    ranks = np.append(rank, NONE)[rivals.taken]  # who took nothing, -1, reads the last, which is no rank
    positives = np.bincount(rivals.label[inside], minlength=classes)
    table = average_precision_table(ranks, rivals.label, positives, normaliser=normaliser)
    return mean_of(table)
