"""Suppression where neighbouring clips overlap: an action there is found in both, one elsewhere only once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jostle.detectors.nms import columns, kept_apart


def overlap_nms(
    segments: npt.ArrayLike,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    overlaps: Sequence[tuple[float, float]],
    *,
    threshold: float,
    released_faults: bool = False,
) -> npt.NDArray[np.int64]:
    """Which rows stay: of those that reach into an overlap, the ones that hard NMS within a class leaves; all others.

    Those of one overlap come after those of the one before it, each by falling score, and the others last.

    Args:
        overlaps: (start, end) of each stretch that two clips see, in time.
        threshold: least IoU at which the weaker of two candidates goes.
        released_faults: let what reaches into two overlaps stay twice, if it stays in both, as E2E-TAD's program does.

    >>> found = [[0, 4], [1, 4], [6, 7], [6, 7]], [0.8, 0.9, 0.7, 0.6], [0, 0, 0, 0]
    >>> overlap_nms(*found, [(3, 5)], threshold=0.4).tolist()
    [1, 2, 3]
    """
    segments, scores, labels, start, end = columns(segments, scores, labels)
    free = np.ones(len(scores), np.bool_)
    kept: list[npt.NDArray[np.int64]] = []
    for begin, stop in overlaps:
        (row,) = ((start < stop) & (end > begin)).nonzero()
        if len(row):
            left = kept_apart(segments[row], scores[row], labels[row], threshold=threshold, max_segments=len(row))
            kept.append(row[left])
            free[row] = False
    rows = np.concatenate([*kept, free.nonzero()[0]]).astype(np.int64)
    if released_faults:
        return rows
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]
