"""False positives: the kind of error of each unmatched prediction, and the cost of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel, read_only
from jostle.core.types.columns import Flags, Floats, Indices, Ints
from jostle.core.types.truth import Truth
from jostle.metrics.alignment import Aligned
from jostle.metrics.matching import NONE, Matches, Ranking, Segmentation, tiou
from jostle.metrics.mean_ap import average_precision_table, instance_ranks, mean_of_table

ERROR_KINDS = ("true_positive", "double_detection", "wrong_label", "localization", "confusion", "background")
ERRORS = ERROR_KINDS[1:]
SPLITS = 10
MIN_OVERLAP = 0.1  # a prediction with less overlap is background


@dataclass(frozen=True, eq=False)
class TopPredictions:
    """The top-10G: the ten times as many best predictions of each class as it has instances."""

    aligned: Aligned  # by class, the most confident first, ties in file order; its `rows` are never None
    split: npt.NDArray[np.int8]  # (n,) int8 from 1: the first G of a class are in split 1, the next G in split 2, .. 10

    @property
    def rows(self) -> Ints:
        """(n,) row numbers of the predictions."""
        assert self.aligned.rows is not None
        return self.aligned.rows


@dataclass(frozen=True, eq=False)
class FalsePositives:
    """Kinds of error among the top-10G."""

    rows: Ints  # (n,) int64, rows of the predictions that were given: class by class, the most confident first
    split: npt.NDArray[np.int8]  # (n,) int8, 1 to 10
    kind: npt.NDArray[np.int8]  # (T, n) int8 into `ERROR_KINDS`
    matched: Indices  # (T, n) int32, the row of the instance in the truth that was given, or -1
    nearest: Indices  # (n,) int32, the row of the instance of any class that overlaps most, or -1 if none overlaps
    nearest_tiou: Floats  # (n,) float64, by how much
    counts: Ints  # (T, 6) predictions of each kind
    split_counts: Floats  # (10, 6) the same in each split, means over thresholds
    split_sizes: Ints  # (10,) predictions in each split
    impact: dict[str, float]  # by error, what average mAP_N gains if all of that kind vanish
    ap_after_removal: dict[str, Floats]  # by error, (C, T) AP_N without that kind; NaN for a class without an instance

    @property
    def totals(self) -> dict[str, float]:
        """Number of predictions of each kind, averaged over thresholds."""
        return dict(zip(ERROR_KINDS, self.counts.mean(axis=0).tolist(), strict=True))

    @property
    def profile(self) -> list[dict[str, float | int | None]]:
        """Number of predictions in each split, and the share of each kind (None for an empty split)."""
        splits = []
        for g in range(SPLITS):
            size = int(self.split_sizes[g])
            parts = (self.split_counts[g] / size).tolist() if size else [None] * len(ERROR_KINDS)
            splits.append({"split": g + 1, "count": size} | dict(zip(ERROR_KINDS, parts, strict=True)))
        return splits


def choose_best(aligned: Aligned, ranking: Ranking, file_order: Ints, *, instances: Ints) -> TopPredictions:
    """Choose the top-10G of ranked predictions.

    Args:
        file_order: places with ties in file order, see `mean_ap.reverse_ties`; at the limit the earlier row stays.
        instances: (C,) how many each class has, G.
    """
    # Reversing runs of ties twice changes nothing, so `file_order` is its own inverse.
    counts = np.minimum(np.diff(ranking.first), SPLITS * instances)
    ranks = [np.arange(count) for count in counts]
    selected = ranking.order[
        np.concatenate([file_order[a + rank] for a, rank in zip(ranking.first, ranks, strict=False)])
    ]
    split = np.concatenate([rank // max(own, 1) + 1 for rank, own in zip(ranks, instances, strict=True)])
    return TopPredictions(
        replace(
            aligned,
            rows=selected if aligned.rows is None else aligned.rows[selected],
            video=aligned.video[selected],
            start=aligned.start[selected],
            end=aligned.end[selected],
            label=aligned.label[selected],
            score=aligned.score[selected],
        ),
        split.astype(np.int8),
    )


def sort_errors(
    best: TopPredictions,
    matches: Matches,
    truth: Truth,
    *,
    segments: Segmentation,
    rows: Ints,
    positives: Ints,
    normaliser: float,
) -> FalsePositives:
    """Determine the kind of each top-10G prediction at each threshold, and the impact of each kind.

    Args:
        rows: (I,) where they stand in the truth that was given.
    """
    near, overlap = nearest_instances(best.aligned, truth, segments)
    same = np.append(truth.label, NONE)[near] == best.aligned.label
    matched = np.full((len(matches.tious), len(best.rows)), NONE, np.int32)
    kind = np.empty(matched.shape, np.int8)
    for t, threshold in enumerate(matches.tious):
        instances = np.flatnonzero(matches.taken_by[t] != NONE)
        at = matches.ranking.order[matches.taken_by[t, instances]]
        matched[t, at] = rows[instances]
        kind[t] = classify_errors(overlap, same, threshold)
        kind[t, at] = 0
    counts = np.stack([np.bincount(row, minlength=len(ERROR_KINDS)) for row in kind])
    removed = _after_removal(kind, matches, positives, normaliser)
    base = mean_of_table(
        average_precision_table(instance_ranks(matches), matches.label, positives, normaliser=normaliser)
    )
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
        impact={name: mean_of_table(table) - base for name, table in removed.items()},
        ap_after_removal=removed,
    )


def classify_errors(overlap: Floats, same: Flags, threshold: float) -> npt.NDArray[np.int8]:
    """Return (n,) indices into `ERROR_KINDS`, by the instance of any class that each prediction overlaps most.

    Overlap of at least the threshold: a double detection if the instance has the predicted class (some other
    prediction must have taken it), else a wrong label. Overlap of at least 0.1: bad localization, or confusion.
    Less: background.

    >>> found = classify_errors(np.array([0.6, 0.6, 0.2, 0.2, 0.0]), np.array([True, False, True, False, False]), 0.5)
    >>> [ERROR_KINDS[i] for i in found]
    ['double_detection', 'wrong_label', 'localization', 'confusion', 'background']
    """
    kinds = np.where(overlap >= threshold, np.where(same, 1, 2), np.where(same, 3, 4))
    kinds[(overlap < threshold) & (overlap < MIN_OVERLAP)] = 5
    return kinds.astype(np.int8)


def nearest_instances(aligned: Aligned, truth: Truth, segments: Segmentation) -> tuple[Ints, Floats]:
    """Return (n,) the instance of any class that each prediction overlaps most, or -1, and the overlap.

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
        read_only(aligned.video),
        read_only(aligned.start),
        read_only(aligned.end),
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
    """Return by error the (C, T) AP_N without that kind; matches stay unchanged."""
    ranks, ranking = instance_ranks(matches), matches.ranking
    first = ranking.first[matches.label]
    tables = {}
    for code, name in enumerate(ERROR_KINDS[1:], 1):
        moved = ranks.copy()
        for t in range(len(ranks)):
            before = np.concatenate([[0], np.cumsum(kind[t][ranking.order] == code)])
            is_matched = ranks[t] != NONE
            moved[t, is_matched] -= (before[matches.taken_by[t]] - before[first])[is_matched]
        tables[name] = average_precision_table(moved, matches.label, positives, normaliser=normaliser)
    return tables


def _count_by_split(kind: npt.NDArray[np.int8], split: npt.NDArray[np.int8]) -> Floats:
    """Return (10, 6) counts by split and kind, averaged over thresholds."""
    size = SPLITS * len(ERROR_KINDS)
    counts: Sequence[Ints] = [
        np.bincount((split - 1).astype(np.int64) * len(ERROR_KINDS) + row, minlength=size) for row in kind
    ]
    means: Floats = np.mean(counts, axis=0).reshape(SPLITS, len(ERROR_KINDS))
    return means


@kernel
def _find_nearest(
    video: Any, start: Any, end: Any, edges: Any, instance: Any, true_start: Any, true_end: Any, near: Any, overlap: Any
) -> None:
    for row in range(len(video)):
        for j in range(edges[video[row]], edges[video[row] + 1]):
            shared = tiou(start[row], end[row], true_start[j], true_end[j])
            if shared > overlap[row]:
                near[row], overlap[row] = instance[j], shared
