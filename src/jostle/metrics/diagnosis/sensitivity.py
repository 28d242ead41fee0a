"""Sensitivity: precision on the instances of each bucket, with the false alarms of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Flags, Ints
from jostle.metrics.diagnosis.characteristics import Characteristic
from jostle.metrics.matching import NONE, Matches
from jostle.metrics.mean_ap import average_precision_table, instance_ranks, mean_of_table

_MIXED = -2  # matched to instances of different buckets at different thresholds


@dataclass(frozen=True)
class Extent:
    """The smallest and the largest value over the buckets that hold an instance."""

    min: float
    max: float
    relative_min: float | None  # `min` divided by the base; None where the base is 0
    relative_max: float | None

    @property
    def sensitivity(self) -> float:
        """Sensitivity as defined in the paper: maximum minus minimum."""
        return self.max - self.min

    def impact(self, base: float) -> float:
        """Return the impact as defined in the paper: maximum minus base."""
        return self.max - base


@dataclass(frozen=True)
class Sensitivity:
    """Average mAP_N of the instances of each bucket."""

    base: float  # average mAP_N of all instances
    # By characteristic and bucket; None for a bucket without an instance.
    buckets: Mapping[str, Mapping[str, float | None]]

    @property
    def profile(self) -> dict[str, Extent]:
        """Extent of the values by characteristic."""
        extents = {}
        for name, buckets in self.buckets.items():
            values = [value for value in buckets.values() if value is not None]
            if values:
                low, high = min(values), max(values)
                relative = (low / self.base, high / self.base) if self.base else (None, None)
                extents[name] = Extent(low, high, *relative)
        return extents


def measure_sensitivity(
    matches: Matches,
    file_order: Ints,
    characteristics: Mapping[str, Characteristic],
    *,
    classes: int,
    normaliser: float,
    base: float,
) -> Sensitivity:
    """Compute the average mAP_N of each bucket.

    For bucket b and every class with an instance in it: predictions matched to an instance outside b at any threshold
    are removed, the rest is ranked, and AP_N computed with the instances in b as positives. False alarms stay.

    Args:
        file_order: places with ties in file order, see `mean_ap.reverse_ties`.
    """
    matched = _MatchedPredictions(matches, file_order)
    values = {}
    for name, characteristic in characteristics.items():
        bucket = characteristic.bucket.astype(np.int64)
        own = matched.own_bucket(bucket)
        values[name] = {
            label: _value(matched, bucket == b, own != b, classes=classes, normaliser=normaliser)
            for b, label in enumerate(characteristic.labels)
        }
    return Sensitivity(base, values)


class _MatchedPredictions:
    """Predictions matched to an instance at some threshold; only these are ever removed from a list.

    Attributes:
        rank: (M,) rank of each within its class, ties in file order; they are in rising order class by class.
        opens: (M,) the first of them that has the same class.
        taken: (T, I) which of them took an instance, or -1.
    """

    def __init__(self, matches: Matches, file_order: Ints) -> None:
        ranks = instance_ranks(matches)
        is_matched = ranks != NONE
        first = matches.ranking.first[np.broadcast_to(matches.label, ranks.shape)[is_matched]]
        places, at, inverse = np.unique(
            file_order[matches.taken_by[is_matched]], return_index=True, return_inverse=True
        )
        self.label = matches.label
        self.rank: Ints = places - first[at]
        self.opens: Ints = np.searchsorted(places, first[at])
        self.taken: Ints = np.full(ranks.shape, NONE, np.int64)
        self.taken[is_matched] = inverse

    def own_bucket(self, bucket: Ints) -> Ints:
        """Return (M,) the common bucket of all instances matched to a prediction, or a negative number."""
        is_matched = self.taken != NONE
        which, of = self.taken[is_matched], np.broadcast_to(bucket, self.taken.shape)[is_matched]
        lowest = np.full(len(self.rank), np.iinfo(np.int64).max)
        highest = np.full(len(self.rank), np.iinfo(np.int64).min)
        np.minimum.at(lowest, which, of)
        np.maximum.at(highest, which, of)
        return np.where(lowest == highest, lowest, _MIXED)


def _value(
    matched: _MatchedPredictions, inside: Flags, removed: Flags, *, classes: int, normaliser: float
) -> float | None:
    """Return the average mAP_N of the instances in a bucket, without the removed predictions."""
    if not inside.any():
        return None
    before = np.concatenate([[0], np.cumsum(removed)])
    rank = matched.rank - (before[:-1] - before[matched.opens])
    rank[removed] = NONE
    ranks = np.append(rank, NONE)[matched.taken]  # index -1 (unmatched) reads the last entry, NONE
    positives = np.bincount(matched.label[inside], minlength=classes)
    table = average_precision_table(ranks, matched.label, positives, normaliser=normaliser)
    return mean_of_table(table)
