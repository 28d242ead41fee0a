"""What a metric makes of the predictions of one cell: a value, and what it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.columns import Floats

Weights = npt.NDArray[np.int16]  # (draws, videos)
# The value in each draw; and where the weights have one column more than there are videos, the value with a video that
# nobody has seen at its worst, and at its best.
Draws = tuple[Floats, tuple[Floats, Floats] | None]


class Measured:
    """Value of a metric in one cell.

    Reports use the other properties where a metric has them. What a subclass leaves as it is here is absent there: a
    value without draws has no interval, so that a gate leaves it undecided.

    Args:
        value: of the cell, a fraction.
        videos: ids of the videos that were measured, in the order of `by_video` and of weights.
        more: further values for scores.json, as plain values; `interval` is shown as that of the value.

    >>> Measured(0.5, more={"interval": [0.4, 0.6]}).drawn(np.ones((2, 0), np.int16)) is None
    True
    """

    def __init__(self, value: float, videos: Sequence[str] = (), more: Mapping[str, Any] | None = None) -> None:
        self.value, self.videos, self._more = value, tuple(videos), dict(more or {})

    @property
    def more(self) -> dict[str, Any]:
        """Further values for scores.json."""
        return self._more

    @property
    def by_class(self) -> Mapping[str, float]:
        """The value of each class that has one."""
        return {}

    @property
    def by_video(self) -> Floats:
        """(videos,) the value of each video by itself, NaN where it has none."""
        return np.full(len(self.videos), np.nan)

    @property
    def trials(self) -> Floats | None:
        """(videos,) number of answers of each video, where the value is the share of right ones; else None."""
        return None

    def drawn(self, weights: Weights) -> Draws | None:
        """Return the value where each video counts so often; None for a metric without intervals.

        Args:
            weights: (draws, videos), or with one column more, for a video that nobody has seen.
        """
        return None

    def of_class(self, name: str) -> Measured | None:
        """Return the same of one class alone, NaN where it has no instance; None if that cannot be had."""
        return None


class MeanOverItems(Measured):
    """Mean over items of videos, such as answers; a draw weighs the videos, each with all its items.

    Args:
        videos: ids of the videos.
        total: (videos,) sum of the values of each video's items, each from 0 to 1.
        count: (videos,) number of items of each video.
        share: whether items are right or wrong, so that the value is a share of them.
        value: by default the mean over all items.

    >>> found = MeanOverItems(("a", "b"), np.array([1.0, 1.0]), np.array([1.0, 3.0]))
    >>> found.value, found.by_video.round(2).tolist(), found.drawn(np.array([[2, 0], [0, 2]], np.int16))[0].round(2)
    (0.5, [1.0, 0.33], array([1.  , 0.33]))
    """

    def __init__(
        self, videos: Sequence[str], total: Floats, count: Floats, *, share: bool = True, value: float | None = None
    ) -> None:
        self.total, self.count, self._share = total, count, share
        mean = float(total.sum() / count.sum()) if count.any() else float("nan")
        super().__init__(mean if value is None else value, videos)

    @property
    def by_video(self) -> Floats:
        return np.where(self.count > 0, self.total / np.maximum(self.count, 1), np.nan)

    @property
    def trials(self) -> Floats | None:
        return self.count if self._share else None

    def drawn(self, weights: Weights) -> Draws:
        """Return the mean where each video counts so often; an unseen one has as many items as any."""
        videos = len(self.videos)
        seen = weights[:, :videos]
        sums, counts = seen @ self.total, seen @ self.count
        with np.errstate(invalid="ignore", divide="ignore"):
            if weights.shape[1] == videos:
                return sums / counts, None
            unseen = weights[:, -1] * self.count.max(initial=0.0)
            return sums / counts, (sums / (counts + unseen), (sums + unseen) / (counts + unseen))


def sum_by_video(videos: Sequence[str], owners: Sequence[str], values: Floats) -> tuple[Floats, Floats]:
    """Return the sum of the values of each video's items, and their number.

    Args:
        owners: (items,) the video of each item.
        values: (items,) from 0 to 1.
    """
    place = {name: i for i, name in enumerate(videos)}
    index = np.array([place[name] for name in owners], np.int64)
    total = np.bincount(index, values, len(place)).astype(np.float64)
    return total, np.bincount(index, minlength=len(place)).astype(np.float64)


@dataclass(frozen=True)
class MetricValue:
    """Metric value of a cell."""

    value: float  # value of the benchmark's metric, a fraction
    more: dict[str, Any] = field(default_factory=dict)  # further values for scores.json
