"""Characteristics of instances, from the file or computed, sorted into buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.core.types.columns import Flags, Floats, Ints
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError
from jostle.metrics.diagnosis.style import NO_BUCKET, Buckets, Style
from jostle.metrics.matching import Segmentation

LONGER_THAN_ITS_VIDEO = "longer than its video"
NO_LENGTH = "without length"


@dataclass(frozen=True, eq=False)
class Characteristic:
    """One characteristic of all counted instances."""

    buckets: Buckets  # how it is sorted
    values: Floats  # (I,) float64, NaN where missing
    bucket: npt.NDArray[np.int8]  # (I,) int8 into the labels, -1 for none
    computed: bool  # whether it was computed, as the file lacks it

    @property
    def name(self) -> str:
        return self.buckets.characteristic

    @property
    def labels(self) -> tuple[str, ...]:
        return self.buckets.labels

    @property
    def counts(self) -> Ints:
        """(B,) number of instances in each bucket."""
        return np.bincount(self.bucket[self.bucket != NO_BUCKET], minlength=len(self.labels))

    @property
    def without(self) -> int:
        """Number of instances in no bucket."""
        return int(np.count_nonzero(self.bucket == NO_BUCKET))


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances that a diagnosis counts, with their characteristics."""

    truth: Truth  # only these, with all videos and classes
    rows: Ints  # (I,) int64, their rows in the original truth
    characteristics: Mapping[str, Characteristic]  # by name, in the order of the style
    classes: int  # number of classes with an instance before any was dropped
    dropped: dict[str, int]  # instances that do not count, by reason


def prepare(truth: Truth, style: Style) -> Instances:
    """Sort instances into buckets, and drop those that DETAD does not count.

    Instances with a coverage above 1 are dropped, if coverage is among the characteristics, and then those of zero
    length. A class keeps its index even if all of its instances are dropped.

    Raises:
        DataError: if no instance is left.
    """
    values, computed = {}, set()
    for buckets in style.buckets:
        name = buckets.characteristic
        stored = _read_stored(truth, name)
        column = _compute(truth, name, style) if stored is None else stored
        if column is not None:
            values[buckets] = column
            if stored is None:
                computed.add(name)
    coverage = next((v for buckets, v in values.items() if buckets.characteristic == "coverage"), None)
    too_long: Flags = np.zeros(len(truth), bool) if coverage is None else coverage > 1.0
    empty = ~too_long & (truth.start >= truth.end)
    rows = np.flatnonzero(~too_long & ~empty)
    dropped = {LONGER_THAN_ITS_VIDEO: int(too_long.sum()), NO_LENGTH: int(empty.sum())}
    if not len(rows):
        reasons = ", ".join(f"{count} {why}" for why, count in dropped.items() if count)
        raise DataError(
            f"there is no instance to diagnose: the ground truth has {len(truth)}"
            + (f", {reasons}; check its segments and durations" if reasons else "; check the subset")
        )
    return Instances(
        truth=truth.keep(~too_long & ~empty),
        rows=rows,
        characteristics={
            buckets.characteristic: Characteristic(
                buckets, column[rows], buckets.sort(column[rows]), buckets.characteristic in computed
            )
            for buckets, column in values.items()
        },
        classes=int(np.count_nonzero(truth.counts)),
        dropped=dropped,
    )


def _read_stored(truth: Truth, name: str) -> Floats | None:
    """Return the values in the file; None if all are missing, such as THUMOS14's `agreement`."""
    for spelling in (name, name.replace("-", "_")):
        values = truth.characteristics.get(spelling)
        if values is not None and not np.isnan(values).all():
            return values
    return None


def _compute(truth: Truth, name: str, style: Style) -> Floats | None:
    """Compute a characteristic from segments and durations; None for those that need human judgement."""
    if name == "length":
        return truth.end - truth.start
    if name == "coverage":
        with np.errstate(divide="ignore", invalid="ignore"):
            coverage = (truth.end - truth.start) / truth.duration[truth.video]
        return None if np.isnan(coverage).all() else coverage
    if name == "num-instances":
        key = truth.video.astype(np.int64)
        if style.instances == "same class":
            key = key * len(truth.classes) + truth.label
        _, index, counts = np.unique(key, return_inverse=True, return_counts=True)
        return counts[index].astype(np.float64)
    return None


def annotated_segments(truth: Truth, annotators: int) -> Segmentation:
    """Return the first `annotators` annotations of each instance; with one, its own segment.

    Annotations of zero length are skipped, and an instance without any other keeps its own segment.

    >>> both = np.array([[1.0, 2.0], [1.5, 3.0]])
    >>> truth = Truth(("a",), ("Jump",), [0], [1.0], [2.0], [0], all_segments=(both,))
    >>> annotated_segments(truth, 2).end.tolist()
    [2.0, 3.0]
    """
    if annotators < 1:
        raise BadValue(f"annotators must be at least 1, got {annotators}")
    if annotators == 1:
        return Segmentation(np.arange(len(truth)), truth.start, truth.end)
    if truth.all_segments is None:
        raise DataError(
            f"{annotators} annotations of each instance were requested and the ground truth has one; use a file with "
            "'all-segments', or annotators=1"
        )
    parts = []
    for segments, start, end in zip(truth.all_segments, truth.start, truth.end, strict=True):
        chosen = segments[:annotators]
        chosen = chosen[chosen[:, 0] < chosen[:, 1]] if len(chosen) else chosen
        parts.append(chosen if len(chosen) else np.array([[start, end]]))
    rows = np.concatenate(parts)
    return Segmentation(np.repeat(np.arange(len(truth)), [len(part) for part in parts]), rows[:, 0], rows[:, 1])
