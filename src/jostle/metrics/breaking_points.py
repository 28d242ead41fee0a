"""Statistics of breaking points: how many damaged frames lose an item, over a data set and between two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle.core.tables import Column, Table
from jostle.core.types.columns import Floats
from jostle.metrics.bootstrap import bias_corrected, share_interval, video_weights
from jostle.metrics.proportion import clopper_pearson

LENGTHS = (1, 2, 4, 8, 16, 32)  # frames for which the share of lost items is given
SHOWN = (1, 4, 16)  # of these, in tables
DRAWS, LEVEL = 1000, 0.95
Interval = tuple[float, float] | None


@dataclass(frozen=True)
class LostShare:
    """Share of items that damage of at most so many frames loses."""

    frames: int
    share: float
    interval: Interval


@dataclass(frozen=True)
class BreakingDistribution:
    """Distribution of the breaking points of items by one kind of damage.

    Attributes:
        items: number of items that the model has in the clean video.
        unbroken: number of those that no damage of this kind loses.
        median: frames that lose half of the items; None if more than half cannot be lost.
        median_interval: its 95 % interval over videos, None for an end that is not finite or where nothing varies.
        lost_to: the share of items that damage of at most so many frames loses, for some numbers of frames.
        not_monotone: share of the broken items for which more damage does not always do more.
    """

    items: int
    unbroken: int
    median: float | None
    median_interval: tuple[float | None, float | None] | None
    lost_to: tuple[LostShare, ...]
    not_monotone: float | None

    def lost_within(self, frames: int) -> float | None:
        """Return the share of items that damage of at most so many frames loses; None if it was not computed."""
        return next((one.share for one in self.lost_to if one.frames == frames), None)


def breaking_distribution(
    videos: Sequence[str], frames: Sequence[int | None], monotone: Sequence[bool], *, seed: int = 0
) -> BreakingDistribution:
    """Summarize breaking points, with intervals over videos.

    Args:
        videos: the video of each item.
        frames: the breaking point of each, None for an item that no damage loses.
        monotone: whether more damage always did more.

    >>> found = breaking_distribution(["a", "a", "b", "c"], [1, 4, 2, None], [True, True, False, True])
    >>> found.median, found.lost_within(2), found.unbroken
    (3.0, 0.5, 1)
    """
    values = _values(frames)
    broken = np.isfinite(values)
    lengths = LENGTHS if len(values) else ()
    lost_to = [LostShare(n, float(np.mean(values <= n)), share_interval(videos, values <= n)) for n in lengths]
    measured = _medians(values, np.ones((1, len(values))))[0] if len(values) else np.inf
    interval = None
    if len(set(videos)) > 1:
        names = list(dict.fromkeys(videos))
        place = {name: i for i, name in enumerate(names)}
        weights = video_weights(names, DRAWS, seed)[:, [place[name] for name in videos]].astype(np.float64)
        medians = np.sort(_medians(values, weights))  # picked, not interpolated, as some are infinite
        interval = (_finite(medians[int(DRAWS * (1 - LEVEL) / 2)]), _finite(medians[int(DRAWS * (1 + LEVEL) / 2)]))
    return BreakingDistribution(
        items=len(values),
        unbroken=int(np.count_nonzero(~broken)),
        median=_finite(measured),
        median_interval=interval,
        lost_to=tuple(lost_to),
        not_monotone=float(np.mean(~np.array(monotone)[broken])) if broken.any() else None,
    )


@dataclass(frozen=True)
class BreakingComparison:
    """Breaking points of two models on the same items.

    Attributes:
        items: number of items that both models have in the clean video.
        earlier: number of those that the second model loses to fewer frames than the first.
        later: number that it loses to more.
        ratio: geometric mean of the second's frames over the first's, where both have a breaking point.
        ratio_interval: its 95 % interval over videos.
        later_share: share of `later` among the items that differ; 0.5 if neither model is sturdier.
        later_interval: its exact 95 % interval.
    """

    json_keys: ClassVar = (
        *("items", "earlier", "same", "later"),
        *("ratio", "ratio_interval", "later_share", "later_interval"),
    )

    items: int
    earlier: int
    later: int
    ratio: float | None
    ratio_interval: Interval
    later_share: float | None
    later_interval: Interval

    @property
    def same(self) -> int:
        """Number of items that both lose to as many frames, or not at all."""
        return self.items - self.earlier - self.later


def breaking_table(title: str, what: str, distributions: Mapping[str, BreakingDistribution]) -> Table:
    """Return the distributions of breaking points by name, a row each."""
    shares = [Column(f"lost to {n}" if n == 1 else f"to {n}", "percent") for n in SHOWN]
    columns = (
        *(Column(what), Column("items", "count"), Column("median frames"), Column("95 %")),
        *(*shares, Column("never", "percent"), Column("not monotone", "percent")),
    )
    return Table(title, columns, tuple((name, *_numbers(one)) for name, one in distributions.items()))


def _numbers(one: BreakingDistribution) -> tuple[int | float | str | None, ...]:
    if not one.items:
        return (0, None, None, *(None for _ in SHOWN), None, None)
    ends = " to ".join(_frames(end) for end in one.median_interval or ())
    shares = [one.lost_within(n) for n in SHOWN]
    return (one.items, _frames(one.median), ends, *shares, one.unbroken / one.items, one.not_monotone)


def _frames(value: float | None) -> str:
    return "more" if value is None else f"{value:g}"


def breaking_comparison_table(title: str, whose: str, comparisons: Mapping[str, BreakingComparison]) -> Table:
    """Return the comparisons of two models by kind of damage, a row each.

    Args:
        whose: heading of the items that the second model loses to fewer frames.
    """
    columns = (
        *(Column("kind"), Column("items", "count"), Column(whose, "count"), Column("to more", "count")),
        *(Column("frames, ratio", "decimal", 2), Column("95 %")),
    )
    rows = []
    for kind, one in comparisons.items():
        ends = None if one.ratio_interval is None else f"{one.ratio_interval[0]:.2f} to {one.ratio_interval[1]:.2f}"
        rows.append((kind, one.items, one.earlier, one.later, one.ratio, ends))
    return Table(title, columns, tuple(rows))


def compare_breaking_points(
    videos: Sequence[str], first: Sequence[int | None], second: Sequence[int | None], *, seed: int = 0
) -> BreakingComparison:
    """Compare the breaking points of two models item by item.

    >>> found = compare_breaking_points(["a", "b", "c"], [1, 4, 2], [2, 4, None])
    >>> found.later, found.earlier, round(found.ratio, 3)
    (2, 0, 1.414)
    """
    before, after = _values(first), _values(second)
    later, earlier = int(np.count_nonzero(after > before)), int(np.count_nonzero(after < before))
    both = np.isfinite(before) & np.isfinite(after)
    ratio, interval = None, None
    if both.any():
        logs, owners = np.log(after[both] / before[both]), [videos[i] for i in np.flatnonzero(both).tolist()]
        names = list(dict.fromkeys(owners))
        sums, counts = np.zeros(len(names)), np.zeros(len(names))
        for name, value in zip(owners, logs, strict=True):
            sums[names.index(name)] += value
            counts[names.index(name)] += 1
        weights = video_weights(names, DRAWS, seed)
        ends = bias_corrected(weights @ sums / np.maximum(weights @ counts, 1), float(logs.mean()), LEVEL)
        ratio = float(np.exp(logs.mean()))
        interval = None if ends is None else (float(np.exp(ends[0])), float(np.exp(ends[1])))
    differing = earlier + later
    return BreakingComparison(
        items=len(before),
        earlier=earlier,
        later=later,
        ratio=ratio,
        ratio_interval=interval,
        later_share=later / differing if differing else None,
        later_interval=clopper_pearson(later, differing) if differing else None,
    )


def _values(frames: Sequence[int | None]) -> Floats:
    return np.array([np.inf if one is None else one for one in frames], np.float64)


def _medians(values: Floats, weights: Floats) -> Floats:
    """Return the median of values for each row of weights; between two values it is their mean."""
    order = np.argsort(values, kind="stable")
    ranked, total = values[order], np.cumsum(weights[:, order], axis=1)
    half = total[:, -1:] / 2
    upper, lower = ranked[(total > half).argmax(axis=1)], ranked[(total >= half).argmax(axis=1)]
    with np.errstate(invalid="ignore"):
        medians: Floats = np.where(upper == lower, upper, (upper + lower) / 2)
    return medians


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
