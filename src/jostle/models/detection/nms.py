"""Non-maximum suppression of segments: Gaussian soft-NMS, hard NMS and segment voting, compiled by Numba.

Soft-NMS is due to Bodla et al. (2017); the settings are those of ActionFormer and its descendants. A score only ever
falls, so an old score bounds the new one from above: candidates of all classes wait in one heap under their old scores,
only the one on top is brought up to date, and the work ends with the last segment that is wanted. Products are formed
in float32 and in the order of the plain algorithm, so the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.errors import BadValue

Reals = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Detections = tuple[Reals, Reals, Labels]

# The originals add this to every length, so that two segments of no length at one place have an overlap.
_SLACK = np.float32(1e-6)


def soft_nms(
    segments: npt.ArrayLike,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    sigma: float,
    min_score: float,
    max_segments: int,
    multiclass: bool = True,
) -> Detections:
    r"""Apply Gaussian soft-NMS; return segments, scores and labels by falling score.

    The best remaining candidate is kept, and every other one it competes with loses score,

    $$ s_j \leftarrow s_j \exp(-\mathrm{IoU}_{ij}^2 / \sigma), $$

    until it falls below `min_score`. The first pick is never held against `min_score`: a lone weak candidate stays.

    Args:
        segments: (n, 2) start and end, in any unit.
        scores: (n,) finite.
        labels: (n,) class numbers from 0.
        sigma: width of the Gaussian; larger is more lenient.
        max_segments: how many to keep, of all classes together.
        multiclass: candidates compete with those of their own class; otherwise all with all.

    >>> kept = soft_nms([[0, 4], [0, 5], [8, 9]], [0.9, 0.8, 0.3], [0, 0, 0], sigma=0.5, min_score=0.1, max_segments=9)
    >>> kept[0].tolist(), kept[1].round(3)
    ([[0.0, 4.0], [8.0, 9.0], [0.0, 5.0]], array([0.9  , 0.3  , 0.222], dtype=float32))
    """
    if not sigma > 0:
        raise BadValue(f"soft-NMS: sigma must be above 0, not {sigma}")
    segments, scores, labels, start, end = columns(segments, scores, labels)
    groups = labels if multiclass else np.zeros_like(labels)
    decayed = scores.copy()
    length = (end - start) + _SLACK
    limits = np.float32(sigma), np.float32(min_score), _limit(max_segments)
    rows = _soften(start, end, length, decayed, np.arange(len(scores)), groups, _first(groups), *limits)
    return segments[rows], decayed[rows], labels[rows]


def soft_nms_until_one(
    segments: npt.ArrayLike,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    sigma: float,
    min_score: float,
    max_segments: int,
) -> Detections:
    """Apply soft-NMS within each class as AFSD's program: it stops at the last candidate, which is lost.

    A candidate that is alone in its class is never found, therefore. `soft_nms` is the right one.

    Args:
        max_segments: how many to keep of each class.

    >>> three = [[0, 4], [8, 9], [0, 3]], [0.9, 0.8, 0.7], [0, 0, 1]
    >>> soft_nms_until_one(*three, sigma=0.5, min_score=0.1, max_segments=9)[1]
    array([0.9], dtype=float32)
    """
    segments, scores, labels, start, end = columns(segments, scores, labels)
    scores = scores.copy()
    chosen: list[int] = []
    for label in np.unique(labels):
        left = np.flatnonzero(labels == label)
        first = len(chosen)
        while len(left) > 1 and len(chosen) - first < _limit(max_segments):
            best = left[np.argmax(scores[left])]
            chosen.append(int(best))
            left = left[left != best]
            inter = np.maximum(np.minimum(end[left], end[best]) - np.maximum(start[left], start[best]), 0)
            union = (end[left] - start[left]) + (end[best] - start[best]) - inter
            overlap = inter / np.maximum(union, _SLACK)
            scores[left] *= np.exp(-np.square(overlap) / np.float32(sigma))
            left = left[scores[left] >= min_score]
    rows = np.array(chosen, np.int64)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    return segments[rows], scores[rows], labels[rows]


def hard_nms(segments: npt.ArrayLike, scores: npt.ArrayLike, labels: npt.ArrayLike, **ways: Any) -> Detections:
    """Apply hard NMS with the settings of `hard_nms_rows`; return segments, scores and labels by falling score.

    >>> hard_nms([[0, 4], [0, 5], [8, 9]], [0.9, 0.8, 0.3], [0, 0, 0], threshold=0.5, max_segments=9)[1].round(1)
    array([0.9, 0.3], dtype=float32)
    """
    segments, scores, labels, _, _ = columns(segments, scores, labels)
    rows = hard_nms_rows(segments, scores, labels, **ways)
    return segments[rows], scores[rows], labels[rows]


def hard_nms_rows(
    segments: npt.ArrayLike,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    threshold: float,
    max_segments: int,
    min_score: float = 0.0,
    multiclass: bool = True,
) -> Labels:
    """Return the rows that remain after hard NMS, by falling score.

    Args:
        threshold: least IoU at which the weaker of two candidates goes.
        min_score: candidates at or below it are not considered; 0 considers all.
        multiclass: candidates compete with those of their own class; otherwise all with all.
    """
    segments, scores, labels, start, end = columns(segments, scores, labels)
    groups = labels if multiclass else np.zeros_like(labels)
    falling = np.argsort(-scores, kind="stable")
    if min_score > 0:
        falling = falling[scores[falling] > np.float32(min_score)]
    most = _limit(max_segments)
    rows: Labels = _keep_apart(start, end, groups, _first(groups), falling, np.float32(threshold), most)
    return rows


def vote(
    kept: npt.ArrayLike,
    segments: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    threshold: float,
    weight: Literal["score*iou", "score"],
) -> Reals:
    """Return (m, 2) each kept segment replaced by the weighted mean of the candidates that agree with it.

    Args:
        kept: (m, 2) survivors of suppression.
        segments: (n, 2) candidates from before suppression, of any class.
        scores: (n,) their scores, from before suppression.
        threshold: least IoU of a candidate that votes.
        weight: `score*iou` (ActionFormer, TemporalMaxer) or `score` (TriDet, OpenTAD).

    A kept segment for which nobody votes, such as one of no length, stays as it is.

    >>> vote([[0, 4]], [[0, 4], [0, 5], [8, 9]], [0.75, 0.25, 0.3], threshold=0.7, weight="score").tolist()
    [[0.0, 4.25]]
    """
    if weight not in ("score*iou", "score"):
        raise BadValue(f"segment voting: no weight is called {weight!r}; use 'score*iou' or 'score'")
    candidates = np.ascontiguousarray(segments, np.float32).reshape(-1, 2)
    weights = np.ascontiguousarray(scores, np.float32)
    if len(weights) != len(candidates):
        raise BadValue(f"segment voting: {len(candidates)} segments have {len(weights)} scores")
    elected: Reals = _elect(
        np.ascontiguousarray(kept, np.float32).reshape(-1, 2),
        np.ascontiguousarray(candidates[:, 0]),
        np.ascontiguousarray(candidates[:, 1]),
        weights,
        np.float32(threshold),
        weight == "score*iou",
    )
    return elected


def columns(
    segments: npt.ArrayLike, scores: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[Reals, Reals, Labels, Reals, Reals]:
    """Check the arguments and convert them to the types of the kernels, with starts and ends apart."""
    pairs = np.asarray(segments, np.float32).reshape(-1, 2)
    values = np.ascontiguousarray(scores, np.float32)
    classes = np.ascontiguousarray(labels, np.int64)
    if values.shape != (len(pairs),) or classes.shape != (len(pairs),):
        raise BadValue(f"NMS: {len(pairs)} segments have {values.shape} scores and {classes.shape} labels")
    if len(pairs):
        if not (np.isfinite(values).all() and np.isfinite(pairs).all()):
            raise BadValue("NMS: a segment or a score is not a finite number; drop such candidates first")
        if classes.min() < 0:
            raise BadValue(f"NMS: labels are class numbers from 0, not {classes.min()}")
    return pairs, values, classes, np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _first(groups: Labels) -> Labels:
    """Where each group begins when candidates are laid out group by group."""
    size = np.bincount(groups, minlength=1).astype(np.int64)
    return np.cumsum(size) - size


def _limit(max_segments: int) -> int:
    if max_segments < 1:
        raise BadValue(f"NMS: max_segments must be at least 1, not {max_segments}")
    return int(max_segments)


@kernel
def _sift(heap: Any, score: Any, place: int, size: int) -> None:
    """Let the row at `place` sink until no row below it comes before it: a higher score, then the earlier row."""
    row = heap[place]
    value = score[row]
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        chosen = heap[below]
        best = score[chosen]
        if below + 1 < size:
            other = heap[below + 1]
            if score[other] > best or (score[other] == best and other < chosen):
                below += 1
                chosen, best = other, score[other]
        if value > best or (value == best and row < chosen):
            break
        heap[place] = chosen
        place = below
    heap[place] = row


@kernel
def _soften(
    start: Any,
    end: Any,
    length: Any,
    score: Any,
    heap: Any,
    group: Any,
    first: Any,
    sigma: Any,
    min_score: Any,
    most: int,
) -> Any:
    """Decay `score` in place, and return the rows that are kept. `heap` holds all rows."""
    n = len(score)
    for place in range(n // 2 - 1, -1, -1):
        _sift(heap, score, place, n)
    # What a group has kept lies together, in the order in which it was kept.
    store = np.empty((3, n), np.float32)
    kept_start, kept_end, kept_length = store[0], store[1], store[2]
    count = np.zeros(len(first), np.int64)  # kept, by group
    met = np.zeros(n, np.int64)  # how many of its group's kept segments a candidate has lost score to
    rows = np.empty(min(n, most), np.int64)
    found, size = 0, n
    top = n - size  # no literal, for which `_sift` would be compiled once more
    while size and found < most:
        row = heap[0]
        g = group[row]
        a, b = first[g] + met[row], first[g] + count[g]
        value, left, right, long = score[row], start[row], end[row], length[row]
        for k in range(a, b):
            inter = min(right, kept_end[k]) - max(left, kept_start[k])
            if inter > 0:
                iou = inter / (kept_length[k] + long - inter)
                value *= np.exp(-(iou * iou) / sigma)
                if value < min_score:
                    break
        score[row] = value
        met[row] = count[g]
        weak = value < min_score and count[g] > 0
        if a == b and not weak:  # its score was up to date, and it was on top
            rows[found] = row
            found += 1
            kept_start[b], kept_end[b], kept_length[b] = left, right, long
            count[g] += 1
        if a == b or weak:
            size -= 1
            heap[0] = heap[size]
        if size:
            _sift(heap, score, top, size)
    return rows[:found]


@kernel
def _keep_apart(start: Any, end: Any, group: Any, first: Any, falling: Any, threshold: Any, most: int) -> Any:
    length = (end - start) + _SLACK
    kept_start, kept_end, kept_length = np.empty_like(start), np.empty_like(start), np.empty_like(start)
    count = np.zeros(len(first), np.int64)
    rows = np.empty(min(len(falling), most), np.int64)
    found = 0
    for row in falling:
        g = group[row]
        a, b = first[g], first[g] + count[g]
        free = True
        for k in range(a, b):
            inter = max(min(end[row], kept_end[k]) - max(start[row], kept_start[k]), np.float32(0))
            if inter / (kept_length[k] + length[row] - inter) >= threshold:
                free = False
                break
        if free:
            rows[found] = row
            found += 1
            if found == most:
                break
            kept_start[b], kept_end[b], kept_length[b] = start[row], end[row], length[row]
            count[g] += 1
    return rows[:found]


@kernel
def _elect(kept: Any, start: Any, end: Any, score: Any, threshold: Any, by_iou: bool) -> Any:
    made = kept.copy()
    for i in range(len(kept)):
        a, b = kept[i, 0], kept[i, 1]
        total = left = right = 0.0  # in double: a mean of hundreds
        for j in range(len(start)):
            inter = min(b, end[j]) - max(a, start[j])
            if inter <= 0:
                continue
            iou = inter / ((b - a) + (end[j] - start[j]) - inter)
            if iou >= threshold:
                vote_weight = score[j] * iou if by_iou else score[j]
                total += vote_weight
                left += vote_weight * start[j]
                right += vote_weight * end[j]
        if total > 0:
            made[i, 0], made[i, 1] = left / total, right / total
    return made


def weighted_nms(
    segments: npt.ArrayLike, scores: npt.ArrayLike, labels: npt.ArrayLike, *, threshold: float
) -> Detections:
    r"""Merge overlapping segments of a class; return segments, scores and labels by falling score.

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
    """Return start, end and best row of each group; `order` groups classes, each by falling score."""
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
                vote_weight = np.float64(score[other]) * iou
                total += vote_weight
                a += vote_weight * start[other]
                b += vote_weight * end[other]
        left[found], right[found], best[found] = start[row], end[row], row
        if total > 0:
            left[found], right[found] = a / total, b / total
        found += 1
    return left[:found], right[:found], best[:found]


def overlap_nms(
    segments: npt.ArrayLike,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    overlaps: Sequence[tuple[float, float]],
    *,
    threshold: float,
    reproduce_bugs: bool = False,
) -> npt.NDArray[np.int64]:
    """Return the rows that remain after hard NMS among the segments that reach into an overlap.

    Those of one overlap come after those of the one before it, each by falling score, and the others last.

    Args:
        overlaps: (start, end) of each stretch that two clips see, in time.
        threshold: least IoU at which the weaker of two candidates goes.
        reproduce_bugs: let what reaches into two overlaps stay twice, if it stays in both, as E2E-TAD's program does.

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
            left = hard_nms_rows(segments[row], scores[row], labels[row], threshold=threshold, max_segments=len(row))
            kept.append(row[left])
            free[row] = False
    rows = np.concatenate([*kept, free.nonzero()[0]]).astype(np.int64)
    if reproduce_bugs:
        return rows
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]
