"""Matching of predictions with instances, done once for scoring and diagnosis.

An instance is matched to at most one prediction per threshold, so matches are stored by instance: memory grows with the
ground truth, not with the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel, read_only
from jostle.core.types.columns import Flags, Floats, Ints
from jostle.core.types.truth import Spans, Truth
from jostle.metrics.alignment import Aligned
from jostle.metrics.protocol import Protocol

NONE = -1


@dataclass(frozen=True, eq=False)
class Ranking:
    """Predictions sorted by class and descending score."""

    order: Ints  # (n,) int64 rows of the aligned predictions; a position in it is a prediction's place
    first: Ints  # (C + 1,) int64, first position of each class in `order`


@dataclass(frozen=True, eq=False)
class Matches:
    """The prediction matched to each instance at each threshold."""

    tious: Floats  # (T,) thresholds
    ranking: Ranking  # the predictions in matching order
    taken_by: Ints  # (T, I) int64, the place of the prediction matched to each instance, or -1
    label: npt.NDArray[np.int32]  # (I,) int32, the class of each instance
    video: npt.NDArray[np.int32]  # (I,) int32, the video of each instance
    # (n,) by place, whether a prediction touches an ambiguous span; None if there are none.
    excused: Flags | None = None

    def hits(self, threshold: int, label: int) -> Ints:
        """Return the ascending ranks, from 0, of the correct predictions of a class at a threshold."""
        places = self.taken_by[threshold, self.label == label]
        ranks: Ints = np.sort(places[places != NONE]) - self.ranking.first[label]
        return ranks

    def matched(self, threshold: int) -> Ints:
        """Return (n,) by place: the instance matched to each prediction at a threshold, or -1."""
        instance_of = np.full(len(self.ranking.order), NONE, np.int64)
        instances = np.flatnonzero(self.taken_by[threshold] != NONE)
        instance_of[self.taken_by[threshold, instances]] = instances
        return instance_of


def rank(aligned: Aligned, truth: Truth, ties: Literal["later", "video"] = "later") -> Ranking:
    """Sort predictions by class and descending score; the protocol defines the order of ties."""
    if ties == "later":
        falling = np.argsort(aligned.score, kind="stable")[::-1]
    else:
        names = np.array([*truth.videos, *aligned.outside])
        alphabetical = np.empty(len(names), np.int64)
        alphabetical[np.argsort(names)] = np.arange(len(names))
        falling = np.lexsort((alphabetical[aligned.video], -aligned.score))
    first = np.zeros(len(truth.classes) + 1, np.int64)
    np.cumsum(np.bincount(aligned.label, minlength=len(truth.classes)), out=first[1:])
    return Ranking(_by_class(falling, aligned.label, first), first)


def match(
    aligned: Aligned, truth: Truth, protocol: Protocol, tious: Floats, *, segments: Segmentation | None = None
) -> Matches:
    """Match predictions with instances at every threshold by the protocol's rules.

    Args:
        truth: as the protocol prepared it.
        segments: several segments for an instance; by default its own.
    """
    ranking = rank(aligned, truth, protocol.ties)
    rows = segments or Segmentation(np.arange(len(truth)), truth.start, truth.end)
    videos = len(truth.videos) + len(aligned.outside)
    key = truth.label[rows.instance].astype(np.int64) * videos + truth.video[rows.instance]
    by_group = np.argsort(key, kind="stable")
    keys, edges = _runs(key[by_group])
    taken_by = np.full((len(tious), len(truth)), NONE, np.int64)
    arguments = (
        ranking.order,
        _groups(keys, ranking.order, aligned.label, aligned.video, videos),
        read_only(aligned.start),
        read_only(aligned.end),
        edges,
        rows.instance[by_group],
        rows.start[by_group],
        rows.end[by_group],
        tious,
        taken_by,
    )
    if protocol.chooser == "prediction":
        _predictions_choose(*arguments, np.empty(np.diff(edges).max(initial=0)))
    else:
        _instances_choose(*arguments)
    spans = protocol.stretches(truth)
    return Matches(
        tious,
        ranking,
        taken_by,
        truth.label,
        truth.video,
        find_touching(aligned, ranking, spans) if len(spans) else None,
    )


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Segments of instances, one per row; an instance may have several."""

    instance: Ints
    start: Floats
    end: Floats


def find_touching(aligned: Aligned, ranking: Ranking, spans: Spans) -> Flags:
    """Return (n,) by place: whether a prediction overlaps one of the spans of its video."""
    order = np.argsort(spans.video, kind="stable")
    keys, edges = _runs(spans.video[order].astype(np.int64))
    group = _groups(keys, ranking.order, aligned.label, aligned.video, 0)
    flags: Flags = _touches(
        ranking.order, group, aligned.start, aligned.end, edges, spans.start[order], spans.end[order]
    )
    return flags


def _runs(values: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values of a sorted array and the edges of their runs."""
    keys, first = np.unique(values, return_index=True)
    return keys, np.append(first, len(values)).astype(np.int64)


@kernel
def tiou(start: float, end: float, other_start: float, other_end: float) -> float:
    """Return the intersection over union of two segments; two of zero length at the same point overlap fully."""
    inter = max(0.0, min(end, other_end) - max(start, other_start))
    union = (other_end - other_start) + (end - start) - inter
    if union > 0:
        return inter / union
    return 1.0 if start == end == other_start == other_end else 0.0


@kernel
def _by_class(falling: Any, label: Any, first: Any) -> Any:
    place = first.copy()
    order = np.empty(len(falling), np.int64)
    for row in falling:
        order[place[label[row]]] = row
        place[label[row]] += 1
    return order


@kernel
def _groups(keys: Any, order: Any, label: Any, video: Any, videos: int) -> Any:
    """Return by place the index of `label * videos + video` among the sorted keys, or -1."""
    made = np.full(len(order), NONE, np.int32)
    for place in range(len(order)):
        key = np.int64(label[order[place]]) * videos + video[order[place]]
        at, after = 0, len(keys)
        while at < after:  # written out, because NumPy's search takes half a second to compile
            middle = (at + after) >> 1
            if keys[middle] < key:
                at = middle + 1
            else:
                after = middle
        if at < len(keys) and keys[at] == key:
            made[place] = at
    return made


@kernel
def _predictions_choose(
    order: Any, group: Any, start: Any, end: Any, edges: Any, instance: Any, true_start: Any, true_end: Any,
    tious: Any, taken_by: Any, overlap: Any,
) -> None:  # fmt: skip
    lowest = np.inf
    for t in range(len(tious)):
        lowest = min(lowest, tious[t])
    for place in range(len(order)):
        g = group[place]
        if g < 0:
            continue
        row, a, b = order[place], edges[g], edges[g + 1]
        best = 0.0
        for j in range(a, b):
            overlap[j - a] = tiou(start[row], end[row], true_start[j], true_end[j])
            best = max(best, overlap[j - a])
        if best < lowest:
            continue
        for t in range(len(tious)):
            chosen, most = -1, 0.0
            for j in range(a, b):
                # Of equal overlaps the later instance is matched, as in a stable sort read backwards.
                if overlap[j - a] >= tious[t] and overlap[j - a] >= most and taken_by[t, instance[j]] < 0:
                    chosen, most = j, overlap[j - a]
            if chosen >= 0:
                taken_by[t, instance[chosen]] = place


@kernel
def _instances_choose(
    order: Any, group: Any, start: Any, end: Any, edges: Any, instance: Any, true_start: Any, true_end: Any,
    tious: Any, taken_by: Any,
) -> None:  # fmt: skip
    groups = len(edges) - 1
    count = np.zeros(groups + 1, np.int64)
    for g in group:
        if g >= 0:
            count[g + 1] += 1
    first = np.cumsum(count)
    places = np.empty(first[-1], np.int64)
    filled = first.copy()
    for place in range(len(order)):
        g = group[place]
        if g >= 0:
            places[filled[g]] = place
            filled[g] += 1
    for g in range(groups):
        own = places[first[g] : first[g + 1]]  # the group's predictions, the most confident first
        overlap = np.empty(len(own))
        free = np.ones((len(tious), len(own)), np.bool_)
        for j in range(edges[g], edges[g + 1]):
            for i in range(len(own)):
                a, b = start[order[own[i]]], end[order[own[i]]]
                inter = min(b, true_end[j]) - max(a, true_start[j])
                hull = max(b, true_end[j]) - min(a, true_start[j])  # equals the union, save in the last bit
                overlap[i] = inter / hull if inter > 0 else 0.0
            for t in range(len(tious)):
                chosen, most = -1, tious[t]
                for i in range(len(own)):
                    if free[t, i] and overlap[i] > most:
                        chosen, most = i, overlap[i]
                if chosen >= 0:
                    free[t, chosen] = False
                    taken_by[t, instance[j]] = own[chosen]


@kernel
def _touches(order: Any, group: Any, start: Any, end: Any, edges: Any, span_start: Any, span_end: Any) -> Any:
    made = np.zeros(len(order), np.bool_)
    for place in range(len(order)):
        g = group[place]
        if g < 0:
            continue
        row = order[place]
        for j in range(edges[g], edges[g + 1]):
            if min(end[row], span_end[j]) > max(start[row], span_start[j]):
                made[place] = True
                break
    return made
