"""Non-maximum weighting: a group of segments that overlap becomes their mean, after BasicTAD's program."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.compiled import kernel
from jostle.detectors.nms import Detections, columns


def weighted_nms(
    segments: npt.ArrayLike, scores: npt.ArrayLike, labels: npt.ArrayLike, *, threshold: float
) -> Detections:
    r"""Segments, scores and labels of the groups, by falling score.

    The best candidate left and all others of its class whose IoU with it is `threshold` or more become one segment,

    $$ \frac{\sum_j s_j \mathrm{IoU}_j \, x_j}{\sum_j s_j \mathrm{IoU}_j}, $$

    with the score of the best. Then the best that is left has its turn.

    Args:
        segments: (n, 2) start and end, in any unit.
        scores: (n,) finite.
        labels: (n,) class numbers from 0.

    >>> weighted_nms([[0, 4], [0, 5], [8, 9]], [0.8, 0.5, 0.3], [0, 0, 0], threshold=0.5)[0].round(3).tolist()
    [[0.0, 4.333000183105469], [8.0, 9.0]]
    """
    _, values, classes, start, end = columns(segments, scores, labels)
    falling = np.argsort(-values, kind="stable")
    by_class = falling[np.argsort(classes[falling], kind="stable")]
    left, right, best = _weighted(start, end, values, classes, by_class, np.float32(threshold))
    made = np.stack([left, right], -1).astype(np.float32)
    order = np.lexsort((best, -values[best]))
    rows = best[order]
    return made[order], values[rows], classes[rows]


@kernel
def _weighted(start: Any, end: Any, score: Any, label: Any, order: Any, threshold: Any) -> tuple[Any, Any, Any]:
    """Start, end and best row of each group; `order` has classes together, each by falling score."""
    n = len(order)
    gone = np.zeros(n, np.bool_)
    left, right, best = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.int64)
    found = 0
    for i in range(n):
        if gone[i]:
            continue
        row = order[i]
        length = end[row] - start[row]
        total = np.float64(score[row])
        a, b = total * start[row], total * end[row]
        for j in range(i + 1, n):
            other = order[j]
            if label[other] != label[row]:
                break
            if gone[j]:
                continue
            inter = min(end[row], end[other]) - max(start[row], start[other])
            if inter <= 0:
                continue
            iou = inter / (length + (end[other] - start[other]) - inter)
            if iou >= threshold:
                gone[j] = True
                voice = np.float64(score[other]) * iou
                total += voice
                a += voice * start[other]
                b += voice * end[other]
        left[found], right[found], best[found] = start[row], end[row], row
        if total > 0:
            left[found], right[found] = a / total, b / total
        found += 1
    return left[:found], right[:found], best[:found]
