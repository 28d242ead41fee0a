"""Bootstrap intervals over videos: predictions are matched once, and every draw only reweights them.

A video drawn k times counts k times: its instances, hits and false alarms, at their original ranks. A class without
an instance in a draw is not part of that draw's mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from jostle.core.kernels import kernel, read_only
from jostle.core.random import rng_for
from jostle.core.types.columns import Flags, Floats, Indices, Ints
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.metrics.alignment import Aligned
from jostle.metrics.matching import NONE, Matches
from jostle.metrics.measured import Draws, Weights
from jostle.metrics.proportion import clopper_pearson
from jostle.metrics.protocol import Protocol

SHARE_DRAWS, SHARE_LEVEL = 1000, 0.95  # of `share_interval`, as reports have them by default
ROUNDING = 1e-12  # relative difference of two numbers that are equal but for rounding
FEW_VIDEOS = 20  # below which a bootstrap is too sure
_SCORED_AT_ONCE = 20  # draws, between calls of `progress`
_DRAWN_AT_ONCE = 2**14  # videos, of several draws: few calls, and what they work on stays in the cache


@dataclass(frozen=True)
class Interval:
    """Bootstrap intervals of the mean average precision, or of a difference between two."""

    level: float
    resamples: int
    seed: int
    average_map: tuple[float, float]  # (low, high), or None if it does not move
    map: tuple[tuple[float, float] | None, ...]  # (low, high) at each threshold, or None


@dataclass(frozen=True, eq=False)
class Resamples:
    """Ranked predictions and hits, in the form that resampling needs."""

    videos: tuple[str, ...]  # ids, drawn with equal probability
    place_video: Indices  # (n,) int32 by place, the video of each prediction
    first: Ints  # (C + 1,) int64, where each class begins among the places
    hit_place: Ints  # (H,) int64, places of hits by threshold and class, rising
    hit_first: Ints  # (T * C + 1,) int64, where each threshold and class begins among the hits
    instance_label: Indices  # (G,) int32, and `instance_video`: (G,) int32
    instance_video: Indices
    excused: Flags  # (n,) by place, predictions that go uncounted when they miss
    interpolated: bool

    @classmethod
    def from_matches(cls, aligned: Aligned, matches: Matches, truth: Truth, protocol: Protocol) -> Self:
        """Create resamples from the matches of all predictions."""
        classes = len(matches.ranking.first) - 1
        places, first = [], [0]
        for row in matches.taken_by:
            hit = np.sort(row[row != NONE])  # places are sorted by class, so this sorts by class too
            places.append(hit)
            edges = np.searchsorted(hit, matches.ranking.first[1:])
            first += (first[-1] + edges).tolist()
        assert len(first) == len(matches.tious) * classes + 1
        return cls(
            videos=(*truth.videos, *aligned.outside),
            place_video=aligned.video[matches.ranking.order],
            first=matches.ranking.first,
            hit_place=np.concatenate(places),
            hit_first=np.array(first, np.int64),
            instance_label=matches.label,
            instance_video=matches.video,
            excused=np.zeros(0, bool) if matches.excused is None else matches.excused,
            interpolated=protocol.ap == "interpolated",
        )

    def mean_aps(
        self, *, draws: int, seed: int, videos: Collection[str] = (), progress: Callable[[int, int], None] | None = None
    ) -> Floats:
        """Return the (draws, T) mean average precision of each draw.

        Args:
            videos: further videos to draw from, so that two models get the same draws.
        """
        if draws < 2:
            raise BadValue(f"an interval needs at least 2 resamples, got {draws}")
        pool = sorted({*self.videos, *videos})
        index = {name: i for i, name in enumerate(pool)}
        own = np.array([index[name] for name in self.videos])
        weights = video_weights(pool, draws, seed)[:, own]
        means = np.empty((draws, (len(self.hit_first) - 1) // (len(self.first) - 1)))
        for start in range(0, draws, _SCORED_AT_ONCE):
            part = slice(start, start + _SCORED_AT_ONCE)
            means[part] = self.weighted(weights[part])
            if progress is not None:
                progress(min(part.stop, draws), draws)
        return means

    def with_unseen(self, *, detected: bool) -> Self:
        """Return these with one more, last video, which nobody has seen: all its instances are missed, or detected.

        It has as many instances of each class as any video has. Detected ones are ahead of all other predictions of
        their class, and no prediction of it is false.
        """
        classes, unseen = len(self.first) - 1, len(self.videos)
        counts = np.zeros((classes, unseen), np.int64)
        np.add.at(counts, (self.instance_label, self.instance_video), 1)
        each = counts.max(axis=1, initial=0)
        extended = replace(
            self,
            videos=(*self.videos, ""),
            instance_label=np.concatenate([self.instance_label, np.repeat(np.arange(classes), each)]).astype(np.int32),
            instance_video=np.append(self.instance_video, np.full(each.sum(), unseen)).astype(np.int32),
        )
        if not detected:
            return extended
        groups = np.tile(np.arange(classes), (len(self.hit_first) - 1) // max(classes, 1))
        before = np.concatenate([[0], np.cumsum(each)])  # places added ahead of each class
        owned = np.repeat(groups, np.diff(self.hit_first))
        at, ahead = np.repeat(self.first[:-1], each), np.repeat(self.hit_first[:-1], each[groups])
        own_place = np.concatenate([self.first[c] + before[c] + np.arange(each[c]) for c in groups] or [np.zeros(0)])
        return replace(
            extended,
            place_video=np.insert(self.place_video, at, unseen).astype(np.int32),
            first=self.first + before,
            hit_place=np.insert(self.hit_place + before[owned + 1], ahead, own_place.astype(np.int64)),
            hit_first=self.hit_first + np.concatenate([[0], np.cumsum(each[groups])]),
            excused=np.insert(self.excused, at, False) if len(self.excused) else self.excused,
        )

    def of_class(self, label: int) -> Self:
        """Return the predictions, hits and instances of one class."""
        classes = len(self.first) - 1
        begin, end = int(self.first[label]), int(self.first[label + 1])
        hits = [
            self.hit_place[self.hit_first[group] : self.hit_first[group + 1]] - begin
            for group in range(label, len(self.hit_first) - 1, classes)
        ]
        instances = self.instance_label == label
        return replace(
            self,
            place_video=self.place_video[begin:end],
            first=np.array([0, end - begin]),
            hit_place=np.concatenate(hits),
            hit_first=np.cumsum([0, *map(len, hits)]),
            instance_label=np.zeros(int(instances.sum()), np.int32),
            instance_video=self.instance_video[instances],
            excused=self.excused[begin:end] if len(self.excused) else self.excused,
        )

    def by_video(self) -> Floats:
        """Return (videos,) the mean average precision of each video by itself, over its classes; NaN without any."""
        classes = len(self.first) - 1
        label = np.repeat(np.arange(classes), np.diff(self.first))
        group = np.repeat(np.arange(len(self.hit_first) - 1), np.diff(self.hit_first))
        hit_video = self.place_video[self.hit_place]
        places, hits, instances = (
            _grouped(which, len(self.videos)) for which in (self.place_video, hit_video, self.instance_video)
        )
        scores = np.full(len(self.videos), np.nan)
        for v in range(len(self.videos)):
            if not len(instances[v]):
                continue
            own, zeros = places[v], np.zeros(len(places[v]), np.int32)
            part = replace(
                self,
                videos=self.videos[v : v + 1],
                place_video=zeros,
                first=_edges(label[own], classes),
                hit_place=np.searchsorted(own, self.hit_place[hits[v]]),
                hit_first=_edges(group[hits[v]], len(self.hit_first) - 1),
                instance_label=self.instance_label[instances[v]],
                instance_video=np.zeros(len(instances[v]), np.int32),
                excused=self.excused[own] if len(self.excused) else self.excused,
            )
            scores[v] = part.weighted(np.ones((1, 1), np.int16)).mean()
        return scores

    def drawn(self, weights: Weights) -> Draws:
        """Return the mean average precision over all thresholds where each video counts so often."""
        drawn = self.weighted(weights[:, : len(self.videos)]).mean(axis=1)
        if weights.shape[1] == len(self.videos):
            return drawn, None
        worst, best = (self.with_unseen(detected=detected).weighted(weights).mean(axis=1) for detected in (False, True))
        return drawn, (worst, best)

    def weighted(self, weights: Weights) -> Floats:
        """Return the (draws, T) mean average precision with these (draws, videos) weights."""
        means: Floats = _weighted_means(
            read_only(np.ascontiguousarray(weights)),
            read_only(self.place_video),
            read_only(self.first),
            read_only(self.hit_place),
            read_only(self.hit_first),
            read_only(self.instance_label),
            read_only(self.instance_video),
            read_only(self.excused),
            self.interpolated,
            (len(self.hit_first) - 1) // (len(self.first) - 1),
        )
        return means


def _grouped(values: Indices, count: int) -> list[Ints]:
    """Return for each of 0 .. count - 1 its positions among the values, in rising order."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.cumsum(np.bincount(values, minlength=count))[:-1])


def _edges(rising: Ints, count: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(rising, minlength=count))])


def video_weights(videos: Sequence[str], draws: int, seed: int = 0) -> Weights:
    """Return (draws, videos) counts of each video; runs on the same videos get the same draws.

    These are the draws of `jostle eval --bootstrap` and `jostle.compare`.

    >>> video_weights(["a", "b", "c"], 2).sum(axis=1).tolist()
    [3, 3]
    """
    index = {name: i for i, name in enumerate(sorted(videos))}
    own = np.array([index[name] for name in videos], np.int64)
    rng = rng_for(seed, "bootstrap over videos", *index)
    weights = np.empty((draws, len(own)), np.int16)
    rows = max(_DRAWN_AT_ONCE // max(len(own), 1), 1)
    for start in range(0, draws, rows):
        part = weights[start : start + rows]
        drawn = rng.integers(0, len(own), part.shape)
        drawn += len(own) * np.arange(len(part))[:, None]
        part[:] = np.bincount(drawn.ravel(), minlength=part.size).reshape(part.shape).take(own, axis=1)
    return weights


def unseen_weights(videos: Sequence[str], draws: int, seed: int = 0) -> Weights:
    """Return (draws, videos + 1) weights of a Bayesian bootstrap; the last column is of one video that nobody has seen.

    Weights of a draw are independent and exponentially distributed, in units of 1/256. With the unseen video at its
    worst, a low quantile of a mean bounds the true mean from below: exactly that of Clopper and Pearson where values
    are 0 and 1, and for other values between 0 and 1 without a known exception (Gaffke, 2005; Learned-Miller and
    Thomas, 2019).

    >>> unseen_weights(["a", "b", "c"], 2).shape
    (2, 4)
    """
    index = {name: i for i, name in enumerate(sorted(videos))}
    rng = rng_for(seed, "weights of videos and an unseen one", *index)
    drawn = np.rint(256 * rng.standard_exponential((draws, len(index) + 1))).astype(np.int16)
    weights: Weights = drawn[:, [*(index[name] for name in videos), len(index)]]
    return weights


def warn_of_few(videos: int) -> str:
    """Return a warning that intervals from draws of so few videos are too narrow; empty where they are not few.

    >>> warn_of_few(5)
    'few videos: intervals from draws of 5 are too narrow, as draws lack what these videos do not show'
    >>> warn_of_few(20)
    ''
    """
    if not 1 < videos < FEW_VIDEOS:
        return ""
    return f"few videos: intervals from draws of {videos} are too narrow, as draws lack what these videos do not show"


def bootstrap_interval(values: Floats, measured: Floats, *, level: float, seed: int) -> Interval | None:
    """Return the interval of (draws, T) values around the (T,) measured ones, or None if they do not vary."""
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval lies between 0 and 1, got {level}")
    present = ~np.isnan(values).any(axis=1)
    values = values[present]
    if not len(values):
        return None
    average = bias_corrected(values.mean(axis=1), float(measured.mean()), level)
    if average is None:
        return None
    pairs = tuple(bias_corrected(column, float(value), level) for column, value in zip(values.T, measured, strict=True))
    return Interval(level, len(values), seed, average, pairs)


def bias_corrected(draws: Floats, measured: float, level: float) -> tuple[float, float] | None:
    """Return bias-corrected percentiles of the draws (Efron, 1981), or None if all draws agree.

    Average precision of a draw is biased upwards, because a draw holds videos more than once and interpolation rewards
    chance; plain percentiles would be too high by the same amount again. With z0 the normal quantile of the share of
    draws below the measured value, half of those equal to it counted, the ends are the `Phi(2 z0 -+ z)` quantiles.

    >>> [round(end, 6) for end in bias_corrected(np.linspace(0, 1, 1001), 0.5, 0.9)]
    [0.05, 0.95]
    """
    if draws.min() == draws.max():
        return None
    normal = NormalDist()
    # Sums of the same numbers in another order differ in their last bits, on each processor in its own way.
    equal = np.abs(draws - measured) <= ROUNDING * np.abs(draws).max()
    below = float(np.mean((draws < measured) & ~equal) + np.mean(equal) / 2)
    shift = 2 * normal.inv_cdf(min(max(below, 0.5 / len(draws)), 1 - 0.5 / len(draws)))
    reach = normal.inv_cdf((1 + level) / 2)
    low, high = np.quantile(draws, [normal.cdf(shift - reach), normal.cdf(shift + reach)])
    return (float(low), float(high))


def share_interval(owners: Sequence[str], right: Flags, *, draws: int = SHARE_DRAWS) -> tuple[float, float] | None:
    """Return the 95 % interval of the share of right answers, with the videos as independent units.

    Answers of one video are not independent: where a video has several, videos are drawn, each with all its answers.
    Where each has one, or all answers are alike, so that no draw differs, the interval is the exact one of Clopper and
    Pearson over the videos.

    Args:
        owners: (answers,) the video of each answer.
        right: (answers,) whether it is right.

    >>> flags = np.array([True, True, True, False, False, False])
    >>> [round(end, 2) for end in share_interval(["a", "a", "a", "b", "b", "c"], flags)]
    [0.0, 1.0]
    >>> [round(end, 2) for end in share_interval(list("abcdef"), flags)]
    [0.12, 0.88]
    """
    videos = {name: i for i, name in enumerate(dict.fromkeys(owners))}
    if len(videos) < 2:
        return None
    index = np.array([videos[name] for name in owners], np.int64)
    hits, answers = np.bincount(index, right, len(videos)), np.bincount(index, minlength=len(videos))
    share = float(hits.sum() / answers.sum())
    if share in (0.0, 1.0) or len(videos) == len(owners):
        return clopper_pearson(round(share * len(videos)), len(videos))
    weights = video_weights(tuple(videos), draws)
    return bias_corrected(weights @ hits / (weights @ answers), share, SHARE_LEVEL)


def mean_interval(owners: Sequence[str], values: Floats, *, draws: int = SHARE_DRAWS) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean of values, with the videos as independent units.

    Args:
        owners: (values,) the video of each value.

    >>> mean_interval(["a", "a", "b"], np.array([0.2, 0.4, 0.9])) == (0.30000000000000004, 0.9)
    True
    """
    videos = {name: i for i, name in enumerate(dict.fromkeys(owners))}
    if len(videos) < 2:
        return None
    index = np.array([videos[name] for name in owners], np.int64)
    sums, counts = np.bincount(index, values, len(videos)), np.bincount(index, minlength=len(videos))
    weights = video_weights(tuple(videos), draws)
    return bias_corrected(weights @ sums / (weights @ counts), float(sums.sum() / counts.sum()), SHARE_LEVEL)


@kernel
def _weighted_means(
    weights: Any, place_video: Any, first: Any, hit_place: Any, hit_first: Any, instance_label: Any,
    instance_video: Any, excused: Any, interpolated: bool, thresholds: int,
) -> Any:  # fmt: skip
    classes, draws = len(first) - 1, len(weights)
    positives = np.empty(classes)
    before = np.empty(len(place_video))  # weight of all predictions of the class up to and with this place
    made = np.empty((draws, thresholds))
    for draw in range(draws):
        weight = weights[draw]
        positives[:] = 0.0
        for i in range(len(instance_label)):
            positives[instance_label[i]] += weight[instance_video[i]]
        for c in range(classes):
            total = 0.0
            for place in range(first[c], first[c + 1]):
                if len(excused) == 0 or not excused[place]:
                    total += weight[place_video[place]]
                before[place] = total
        for t in range(thresholds):
            mean, present = 0.0, 0
            for c in range(classes):
                if positives[c] == 0:
                    continue
                present += 1
                a, b = hit_first[t * classes + c], hit_first[t * classes + c + 1]
                found, spared = 0.0, 0.0
                for i in range(a, b):
                    found += weight[place_video[hit_place[i]]]
                best, area = 0.0, 0.0
                if interpolated:
                    for i in range(b - 1, a - 1, -1):
                        own = weight[place_video[hit_place[i]]]
                        if own == 0:
                            continue
                        best = max(best, found / before[hit_place[i]])
                        area += own * best
                        found -= own
                else:
                    found = 0.0
                    for i in range(a, b):
                        own = weight[place_video[hit_place[i]]]
                        found += own
                        if len(excused) and excused[hit_place[i]]:
                            spared += own  # a hit counts even where a miss would not
                        if own > 0:
                            area += own * found / (before[hit_place[i]] + spared)
                mean += area / positives[c]
            made[draw, t] = mean / present if present else np.nan
    return made
