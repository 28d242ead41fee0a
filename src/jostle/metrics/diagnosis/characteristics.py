"""Characteristics of instances: what the file says of them or what follows from it, sorted into buckets."""

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
    """One characteristic of all instances that count.

    Attributes:
        buckets: how it is sorted.
        values: (I,) float64, NaN where missing.
        bucket: (I,) int8 into the labels, -1 for none.
        computed: whether it was computed, as the file lacks it.
    """

    buckets: Buckets
    values: Floats
    bucket: npt.NDArray[np.int8]
    computed: bool

    @property
    def name(self) -> str:
        return self.buckets.characteristic

    @property
    def labels(self) -> tuple[str, ...]:
        return self.buckets.labels

    @property
    def counts(self) -> Ints:
        """(B,) instances in each bucket."""
        return np.bincount(self.bucket[self.bucket != NO_BUCKET], minlength=len(self.labels))

    @property
    def without(self) -> int:
        """Instances in no bucket."""
        return int(np.count_nonzero(self.bucket == NO_BUCKET))


@dataclass(frozen=True, eq=False)
class Instances:
    """The instances that count.

    Attributes:
        truth: only these, with all videos and classes.
        rows: (I,) int64, their rows in the truth that was given.
        characteristics: by name, in the order of the style.
        classes: how many classes the ground truth has an instance of, before any was dropped.
        dropped: instances that do not count, by reason.
    """

    truth: Truth
    rows: Ints
    characteristics: Mapping[str, Characteristic]
    classes: int
    dropped: dict[str, int]


def prepare(truth: Truth, style: Style) -> Instances:
    """Sort instances into buckets, then leave out those DETAD does not count.

    Left out are instances with a coverage above 1, if coverage is among the characteristics, and then those of no
    length. A class keeps its place even if all of its instances went.

    Raises:
        DataError: if no instance is left.
    """
    values, computed = {}, set()
    for buckets in style.buckets:
        name = buckets.characteristic
        stored = _stored(truth, name)
        made = _compute(truth, name, style) if stored is None else stored
        if made is not None:
            values[buckets] = made
            if stored is None:
                computed.add(name)
    coverage = next((v for buckets, v in values.items() if buckets.characteristic == "coverage"), None)
    too_long: Flags = np.zeros(len(truth), bool) if coverage is None else coverage > 1.0
    empty = ~too_long & (truth.start >= truth.end)
    rows = np.flatnonzero(~too_long & ~empty)
    dropped = {LONGER_THAN_ITS_VIDEO: int(too_long.sum()), NO_LENGTH: int(empty.sum())}
    if not len(rows):
        went = ", ".join(f"{count} {why}" for why, count in dropped.items() if count)
        raise DataError(
            f"there is no instance to diagnose: the ground truth has {len(truth)}"
            + (f", {went}; check its segments and durations" if went else "; check the subset that was asked for")
        )
    return Instances(
        truth=truth.keep(~too_long & ~empty),
        rows=rows,
        characteristics={
            buckets.characteristic: Characteristic(
                buckets, made[rows], buckets.sort(made[rows]), buckets.characteristic in computed
            )
            for buckets, made in values.items()
        },
        classes=int(np.count_nonzero(truth.counts)),
        dropped=dropped,
    )


def _stored(truth: Truth, name: str) -> Floats | None:
    """What the file says; None where it says nothing at all, as THUMOS14 of `agreement`, which is null throughout."""
    for spelling in (name, name.replace("-", "_")):
        values = truth.characteristics.get(spelling)
        if values is not None and not np.isnan(values).all():
            return values
    return None


def _compute(truth: Truth, name: str, style: Style) -> Floats | None:
    """A characteristic from segments and durations; None for those that people have to judge."""
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
        _, place, counts = np.unique(key, return_inverse=True, return_counts=True)
        return counts[place].astype(np.float64)
    return None


def annotated_segments(truth: Truth, annotators: int) -> Segmentation:
    """The first `annotators` annotations of each instance; with one, its own segment.

    An annotation of no length is passed over, and an instance without any other keeps its own segment.

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
            f"{annotators} annotations of each instance were asked for and the ground truth has one; use a file with "
            "'all-segments', or annotators=1"
        )
    parts = []
    for segments, start, end in zip(truth.all_segments, truth.start, truth.end, strict=True):
        chosen = segments[:annotators]
        chosen = chosen[chosen[:, 0] < chosen[:, 1]] if len(chosen) else chosen
        parts.append(chosen if len(chosen) else np.array([[start, end]]))
    rows = np.concatenate(parts)
    return Segmentation(np.repeat(np.arange(len(truth)), [len(part) for part in parts]), rows[:, 0], rows[:, 1])
