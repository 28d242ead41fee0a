"""Average recall of proposals over their average number (AR-AN), as in ActivityNet's toolkit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.formatting import percent
from jostle.core.kernels import kernel
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.columns import Floats, Ints
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError
from jostle.metrics.metric import statistic
from jostle.metrics.protocol import check_tious, protocols

CURVE_POINTS = 100  # of the curve
SHOWN = (0, 4, 9, 49, 99)  # of these points, in a table


@dataclass(frozen=True, eq=False)
class ProposalScore(Result):
    """The AR-AN curve and its area."""

    tious: Floats  # (T,) thresholds
    average_number: Floats  # (100,) proposals a video, on average
    recall: Floats  # (T, 100) share of instances found at each threshold with so many proposals
    average_recall: Floats  # (100,) mean of `recall` over the thresholds
    # area under the curve over its longest number, a fraction. It starts at the first point, not at 0, so a perfect
    # method gets about 0.99
    area: float
    average_proposals: float  # requested mean number of proposals per video
    videos: int  # videos with an instance
    instances: int  # number of instances in them
    proposals: int  # number of all proposals, also of other videos

    def tables(self) -> tuple[Table, ...]:
        """Return average recall at a few numbers of proposals, and the area under the curve."""
        rows = [(float(self.average_number[j]), float(self.average_recall[j])) for j in SHOWN]
        columns = (Column("proposals a video", "decimal", 1), Column("average recall", "percent"))
        title = f"{self.proposals} proposals for {self.instances} instances in {self.videos} videos"
        return (Table(title, columns, tuple(rows), (f"area under the curve: {percent(self.area)} %",)),)


@statistic("average_recall", task="proposals", cites="caba2015")
def average_recall(
    proposals: Predictions, truth: Truth, *, average_proposals: float | None = None, tious: npt.ArrayLike | None = None
) -> ProposalScore:
    """Recall of all instances, whatever their class, over the mean number of proposals a video.

    With V videos that have an instance, A requested proposals per video and n proposals in a video, that video keeps
    its best int(n A V / all proposals), at most n; M are kept in all. At the j-th of 100 points each video uses the
    first int(m p) of its m kept, p = j/100 A V / M, and the mean number is p M / V. An instance is found if one of them
    has a tIoU of at least the threshold. Of equal scores the later proposal comes first, as in the toolkit.

    Args:
        average_proposals: A; by default all proposals over V. The toolkit's script uses 100.
        tious: thresholds; by default 0.5, 0.55, .. 0.95.

    >>> truth = Truth(("a", "b"), ("Jump",), [0, 1], [1.0, 4.0], [2.0, 6.0], [0, 0])
    >>> found = Predictions(("a", "b"), ("any",), [0, 1], [1.0, 5.0], [2.0, 6.0], [0, 0], [0.9, 0.8])
    >>> average_recall(found, truth).average_recall[[0, 99]].tolist()
    [0.0, 0.55]
    """
    grid = check_tious(protocols["activitynet"].tious if tious is None else tious)
    if not len(truth):
        raise DataError("the ground truth holds no instance, so recall has no meaning; check the subset", fault="F29")
    if average_proposals is not None and not 0 < average_proposals < np.inf:
        raise BadValue(f"average_proposals must be a number above 0, got {average_proposals}")
    known, video_index = np.unique(truth.video, return_inverse=True)
    target_number = len(proposals) / len(known) if average_proposals is None else float(average_proposals)
    share = np.arange(1, CURVE_POINTS + 1) / float(CURVE_POINTS)
    edges, start, end = _rank_by_video(proposals, [truth.videos[v] for v in known.tolist()])
    count = np.diff(edges)
    total = target_number * len(known)
    kept_counts = np.minimum((count * (total / max(len(proposals), 1))).astype(np.int64), count)
    used = np.zeros((len(known), CURVE_POINTS), np.int64)
    number = share * target_number
    if kept_counts.sum():
        part = share * (total / float(kept_counts.sum()))
        used = np.minimum((kept_counts[:, None] * part).astype(np.int64), kept_counts[:, None])
        number = part * (float(kept_counts.sum()) / len(known))
    counts = np.zeros((len(grid), CURVE_POINTS), np.int64)
    rising = np.argsort(grid, kind="stable")
    _count_found(truth.start, truth.end, video_index, edges, kept_counts, start, end, grid[rising], used, counts)
    recall = np.empty(counts.shape)
    recall[rising] = np.cumsum(counts, axis=1) / float(len(truth))
    mean = recall.mean(axis=0)
    area = float(np.trapezoid(mean, number) / number[-1]) if number[-1] else 0.0
    return ProposalScore(grid, number, recall, mean, area, target_number, len(known), len(truth), len(proposals))


def _rank_by_video(proposals: Predictions, videos: list[str]) -> tuple[Ints, Floats, Floats]:
    """Return the first row of each video, and segments sorted by video and descending score."""
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
    first: Any, last: Any, place: Any, edges: Any, kept: Any, start: Any, end: Any, tious: Any, used: Any, found: Any
) -> None:
    """Add to found[t, j] the instances that are first found at point j; thresholds are ascending."""
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
