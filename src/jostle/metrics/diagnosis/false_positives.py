"""False positives: what kind of error each unmatched prediction is, and what each kind costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import fixed, kernel
from jostle.core.types.columns import Flags, Floats, Indices, Ints
from jostle.core.types.truth import Truth
from jostle.metrics.alignment import Aligned
from jostle.metrics.diagnosis.ranks import mean_of
from jostle.metrics.matching import NONE, Matches, Ranking, Segmentation, tiou
from jostle.metrics.mean_ap import average_precision_table, ranks_of

KINDS = ("true_positive", "double_detection", "wrong_label", "localization", "confusion", "background")
ERRORS = KINDS[1:]
SPLITS = 10
TOUCHES = 0.1  # a prediction that overlaps nothing by this much is background


@dataclass(frozen=True, eq=False)
class Best:
    """The top-10G: of each class the ten times as many surest predictions as it has instances.

    Attributes:
        aligned: these predictions, class by class, the surest first, ties in file order; `rows` are given.
        split: (n,) int8 from 1: the first G of a class are in split 1, the next G in split 2, .. 10.
    """

    aligned: Aligned
    split: npt.NDArray[np.int8]

    @property
    def rows(self) -> Ints:
        """(n,) rows of the predictions."""
        assert self.aligned.rows is not None
        return self.aligned.rows


@dataclass(frozen=True, eq=False)
class FalsePositives:
    """Kinds of error among the top-10G.

    Attributes:
        rows: (n,) int64, rows of the predictions that were given: class by class, the surest first.
        split: (n,) int8, 1 to 10.
        kind: (T, n) int8 into `KINDS`.
        matched: (T, n) int32, the row of the instance in the truth that was given, or -1.
        nearest: (n,) int32, the row of the instance of any class that overlaps most, or -1 if none overlaps.
        nearest_tiou: (n,) float64, by how much.
        counts: (T, 6) predictions of each kind.
        split_counts: (10, 6) the same in each split, means over thresholds.
        split_sizes: (10,) predictions in each split.
        impact: by error, what average mAP_N gains if all of that kind vanish.
        ap_after_removal: by error, (C, T) AP_N without that kind; NaN for a class without an instance.
    """

    rows: Ints
    split: npt.NDArray[np.int8]
    kind: npt.NDArray[np.int8]
    matched: Indices
    nearest: Indices
    nearest_tiou: Floats
    counts: Ints
    split_counts: Floats
    split_sizes: Ints
    impact: dict[str, float]
    ap_after_removal: dict[str, Floats]

    @property
    def totals(self) -> dict[str, float]:
        """Predictions of each kind, the mean over thresholds."""
        return dict(zip(KINDS, self.counts.mean(axis=0).tolist(), strict=True))

    @property
    def profile(self) -> list[dict[str, float | int | None]]:
        """By split, how many predictions are in it and what part of them is of each kind (None if it is empty)."""
        made = []
        for g in range(SPLITS):
            size = int(self.split_sizes[g])
            parts = (self.split_counts[g] / size).tolist() if size else [None] * len(KINDS)
            made.append({"split": g + 1, "count": size} | dict(zip(KINDS, parts, strict=True)))
        return made


def choose_best(aligned: Aligned, ranking: Ranking, turned: Ints, *, instances: Ints) -> Best:
    """The top-10G of ranked predictions.

    Args:
        turned: places with ties in file order, see `ranks.ties_turned`; at the cut the earlier row stays.
        instances: (C,) how many each class has, G.
    """
    # Turning runs of ties round twice changes nothing, so `turned` is its own inverse.
    counts = np.minimum(np.diff(ranking.first), SPLITS * instances)
    ranks = [np.arange(count) for count in counts]
    chosen = ranking.order[np.concatenate([turned[a + rank] for a, rank in zip(ranking.first, ranks, strict=False)])]
    split = np.concatenate([rank // max(own, 1) + 1 for rank, own in zip(ranks, instances, strict=True)])
    return Best(
        replace(
            aligned,
            rows=chosen if aligned.rows is None else aligned.rows[chosen],
            video=aligned.video[chosen],
            start=aligned.start[chosen],
            end=aligned.end[chosen],
            label=aligned.label[chosen],
            score=aligned.score[chosen],
        ),
        split.astype(np.int8),
    )


def sort_errors(
    best: Best,
    matches: Matches,
    truth: Truth,
    *,
    segments: Segmentation,
    rows: Ints,
    positives: Ints,
    normaliser: float,
) -> FalsePositives:
    """The kind of each prediction of the top-10G at each threshold, and the impact of each kind.

    Args:
        matches: of the top-10G.
        truth: the instances that count.
        segments: theirs, one or several each.
        rows: (I,) where they stand in the truth that was given.
        positives: (C,) instances of each class.
    """
    near, overlap = nearest_instances(best.aligned, truth, segments)
    same = np.append(truth.label, NONE)[near] == best.aligned.label
    matched = np.full((len(matches.tious), len(best.rows)), NONE, np.int32)
    kind = np.empty(matched.shape, np.int8)
    for t, threshold in enumerate(matches.tious):
        found = np.flatnonzero(matches.taken_by[t] != NONE)
        at = matches.ranking.order[matches.taken_by[t, found]]
        matched[t, at] = rows[found]
        kind[t] = kinds_of(overlap, same, threshold)
        kind[t, at] = 0
    counts = np.stack([np.bincount(row, minlength=len(KINDS)) for row in kind])
    removed = _after_removal(kind, matches, positives, normaliser)
    base = mean_of(average_precision_table(ranks_of(matches), matches.label, positives, normaliser=normaliser))
    return FalsePositives(
        rows=best.rows,
        split=best.split,
        kind=kind,
        matched=matched,
        nearest=np.append(rows, NONE)[near].astype(np.int32),
        nearest_tiou=overlap,
        counts=counts,
        split_counts=_count_by_split(kind, best.split),
        split_sizes=np.bincount(best.split - 1, minlength=SPLITS),
        impact={name: mean_of(table) - base for name, table in removed.items()},
        ap_after_removal=removed,
    )


def kinds_of(overlap: Floats, same: Flags, threshold: float) -> npt.NDArray[np.int8]:
    """(n,) into `KINDS`: the error each unmatched prediction is, by the instance of any class it overlaps most.

    Overlap of at least the threshold: a double detection if the instance has the predicted class (some other
    prediction must have taken it), else a wrong label. Overlap of at least 0.1: bad localization, or confusion.
    Less: background.

    >>> found = kinds_of(np.array([0.6, 0.6, 0.2, 0.2, 0.0]), np.array([True, False, True, False, False]), 0.5)
    >>> [KINDS[i] for i in found]
    ['double_detection', 'wrong_label', 'localization', 'confusion', 'background']
    """
    made = np.where(overlap >= threshold, np.where(same, 1, 2), np.where(same, 3, 4))
    made[(overlap < threshold) & (overlap < TOUCHES)] = 5
    return made.astype(np.int8)


def nearest_instances(aligned: Aligned, truth: Truth, segments: Segmentation) -> tuple[Ints, Floats]:
    """(n,) the instance of any class in its video that each prediction overlaps most, or -1, and the overlap.

    Of equal overlaps it is the first in the file.
    """
    videos = len(truth.videos) + len(aligned.outside)
    video = truth.video[segments.instance]
    order = np.argsort(video, kind="stable")
    edges = np.zeros(videos + 1, np.int64)
    np.cumsum(np.bincount(video, minlength=videos), out=edges[1:])
    near = np.full(len(aligned), NONE, np.int64)
    overlap = np.zeros(len(aligned))
    _find_nearest(
        fixed(aligned.video),
        fixed(aligned.start),
        fixed(aligned.end),
        edges,
        segments.instance[order],
        segments.start[order],
        segments.end[order],
        near,
        overlap,
    )
    return near, overlap


def _after_removal(
    kind: npt.NDArray[np.int8], matches: Matches, positives: Ints, normaliser: float
) -> dict[str, Floats]:
    """By error, (C, T) AP_N of the lists without that kind; matches stay as they are."""
    ranks, ranking = ranks_of(matches), matches.ranking
    first = ranking.first[matches.label]
    made = {}
    for code, name in enumerate(KINDS[1:], 1):
        moved = ranks.copy()
        for t in range(len(ranks)):
            before = np.concatenate([[0], np.cumsum(kind[t][ranking.order] == code)])
            found = ranks[t] != NONE
            moved[t, found] -= (before[matches.taken_by[t]] - before[first])[found]
        made[name] = average_precision_table(moved, matches.label, positives, normaliser=normaliser)
    return made


def _count_by_split(kind: npt.NDArray[np.int8], split: npt.NDArray[np.int8]) -> Floats:
    """(10, 6) means over thresholds."""
    size = SPLITS * len(KINDS)
    counts: Sequence[Ints] = [
        np.bincount((split - 1).astype(np.int64) * len(KINDS) + row, minlength=size) for row in kind
    ]
    means: Floats = np.mean(counts, axis=0).reshape(SPLITS, len(KINDS))
    return means


@kernel
def _find_nearest(
    video: Any,
    start: Any,
    end: Any,
    edges: Any,
    instance: Any,
    true_start: Any,
    true_end: Any,
    near: Any,
    overlap: Any,
) -> None:
    for row in range(len(video)):
        for j in range(edges[video[row]], edges[video[row] + 1]):
            shared = tiou(start[row], end[row], true_start[j], true_end[j])
            if shared > overlap[row]:
                near[row], overlap[row] = instance[j], shared
