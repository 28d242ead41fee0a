"""Average recall of proposals over their number (AR-AN), as ActivityNet's toolkit counts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.types.columns import Floats, Ints
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError
from jostle.metrics.metric import metric
from jostle.metrics.protocol import checked_tious, protocols

POINTS = 100  # of the curve


@dataclass(frozen=True, eq=False)
class ProposalScore:
    """The AR-AN curve and its area.

    Attributes:
        tious: (T,) thresholds.
        average_number: (100,) proposals a video, on average.
        recall: (T, 100) share of instances found at each threshold with so many proposals.
        average_recall: (100,) mean of `recall` over the thresholds.
        area: area under the curve over its longest number, a fraction. It starts at the first point, not at 0, so a
            perfect method gets about 0.99.
        average_proposals: the mean number of proposals a video that was asked for.
        videos: videos with an instance.
        instances: in them.
        proposals: all that were given, also those in other videos.
    """

    tious: Floats
    average_number: Floats
    recall: Floats
    average_recall: Floats
    area: float
    average_proposals: float
    videos: int
    instances: int
    proposals: int

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; shares are fractions."""
        return {
            "format": 1,
            "tious": self.tious.tolist(),
            "average_number": self.average_number.tolist(),
            "recall": self.recall.tolist(),
            "average_recall": self.average_recall.tolist(),
            "area": self.area,
            "average_proposals": self.average_proposals,
            "videos": self.videos,
            "instances": self.instances,
            "proposals": self.proposals,
        }


@metric("average_recall", task="proposals", cites="caba2015")
def average_recall(
    proposals: Predictions,
    truth: Truth,
    *,
    average_proposals: float | None = None,
    tious: npt.ArrayLike | None = None,
) -> ProposalScore:
    """Recall of all instances, whatever their class, over the mean number of proposals a video.

    With V videos that have an instance, A proposals a video asked for and n proposals in a video, that video keeps its
    surest int(n A V / all proposals), at most n; M are kept in all. At the j-th of 100 points each video uses the first
    int(m p) of its m kept, p = j/100 A V / M, and the mean number is p M / V. An instance is found if one of them has a
    tIoU of at least the threshold. Of equal scores the later proposal comes first, as in the toolkit.

    Args:
        average_proposals: A; by default all proposals over V. The toolkit's script uses 100.
        tious: thresholds; by default 0.5, 0.55, .. 0.95.

    >>> truth = Truth(("a", "b"), ("Jump",), [0, 1], [1.0, 4.0], [2.0, 6.0], [0, 0])
    >>> found = Predictions(("a", "b"), ("any",), [0, 1], [1.0, 5.0], [2.0, 6.0], [0, 0], [0.9, 0.8])
    >>> average_recall(found, truth).average_recall[[0, 99]].tolist()
    [0.0, 0.55]
    """
    grid = checked_tious(protocols["activitynet"].tious if tious is None else tious)
    if not len(truth):
        raise DataError("the ground truth holds no instance, so recall has no meaning; check the subset", fault="F29")
    if average_proposals is not None and not 0 < average_proposals < np.inf:
        raise BadValue(f"average_proposals must be a number above 0, got {average_proposals}")
    known, place = np.unique(truth.video, return_inverse=True)
    wanted = len(proposals) / len(known) if average_proposals is None else float(average_proposals)
    share = np.arange(1, POINTS + 1) / float(POINTS)
    edges, start, end = _ranked(proposals, [truth.videos[v] for v in known.tolist()])
    count = np.diff(edges)
    total = wanted * len(known)
    kept = np.minimum((count * (total / max(len(proposals), 1))).astype(np.int64), count)
    used = np.zeros((len(known), POINTS), np.int64)
    number = share * wanted
    if kept.sum():
        part = share * (total / float(kept.sum()))
        used = np.minimum((kept[:, None] * part).astype(np.int64), kept[:, None])
        number = part * (float(kept.sum()) / len(known))
    found = np.zeros((len(grid), POINTS), np.int64)
    rising = np.argsort(grid, kind="stable")
    _count_found(truth.start, truth.end, place, edges, kept, start, end, grid[rising], used, found)
    recall = np.empty(found.shape)
    recall[rising] = np.cumsum(found, axis=1) / float(len(truth))
    mean = recall.mean(axis=0)
    area = float(np.trapezoid(mean, number) / number[-1]) if number[-1] else 0.0
    return ProposalScore(grid, number, recall, mean, area, wanted, len(known), len(truth), len(proposals))


def _ranked(proposals: Predictions, videos: list[str]) -> tuple[Ints, Floats, Floats]:
    """Segments video by video in the order given, the surest first, and where each video begins."""
    index = {video: i for i, video in enumerate(videos)}
    renumber = np.array([index.get(video, len(videos)) for video in proposals.videos], np.int64)
    video = renumber[proposals.video] if len(proposals) else np.zeros(0, np.int64)
    later_first = np.arange(len(proposals))[::-1]
    order = np.lexsort((later_first, -proposals.score, video))
    edges = np.zeros(len(videos) + 1, np.int64)
    np.cumsum(np.bincount(video, minlength=len(videos) + 1)[: len(videos)], out=edges[1:])
    return edges, proposals.start[order], proposals.end[order]


@kernel
def _count_found(
    first: Any,
    last: Any,
    place: Any,
    edges: Any,
    kept: Any,
    start: Any,
    end: Any,
    tious: Any,
    used: Any,
    found: Any,
) -> None:
    """Add to found[t, j] the instances that are first found at point j; the thresholds rise."""
    for g in range(len(first)):
        video = place[g]
        t = 0
        for rank in range(kept[video]):
            row = edges[video] + rank
            overlap = max(0.0, min(end[row], last[g]) - max(start[row], first[g]))
            union = (end[row] - start[row]) + (last[g] - first[g]) - overlap
            if union == 0.0:
                continue  # two of no length at one point: here the toolkit's NaN finds nothing, in detection it matches
            tiou = overlap / union
            if t < len(tious) and tiou >= tious[t]:
                point = np.searchsorted(used[video], rank, side="right")
                while t < len(tious) and tiou >= tious[t]:
                    if point < used.shape[1]:
                        found[t, point] += 1
                    t += 1
            if t == len(tious):
                break
