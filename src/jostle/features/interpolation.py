"""Linear interpolation of feature rows over damaged frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.corruptions.engine.context import Mask
from jostle.models.extractors.protocol import Features

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MendingResult:
    """Outcome of mending one video."""

    damaged: Mask  # (T,) mask of the damaged frames
    left: bool = False  # whether nothing was replaced, since every frame or window was damaged


@dataclass(frozen=True, eq=False)
class RowInterpolation:
    """Interpolation weights for lost rows.

    >>> gaps = RowInterpolation.over(np.array([True, False, True, True, False]))
    >>> gaps.before.tolist(), gaps.after.tolist(), [round(share, 2) for share in gaps.share.tolist()]
    ([1, 1, 1], [1, 4, 4], [0.0, 0.33, 0.67])
    """

    lost: Indices  # (N,) indices of the lost rows, in order
    # `before` and `after`: (N,) the nearest intact rows on both sides; at an end the same row twice.
    before: Indices
    after: Indices
    share: npt.NDArray[np.float32]  # (N,) position between the two, from 0 to 1

    @classmethod
    def over(cls, lost: Mask) -> RowInterpolation:
        """Compute the interpolation over lost rows; at least one row must be intact."""
        rows, sound = np.flatnonzero(lost), np.flatnonzero(~lost)
        position = np.searchsorted(sound, rows)
        before, after = sound[np.maximum(position - 1, 0)], sound[np.minimum(position, len(sound) - 1)]
        before, after = np.where(before > rows, after, before), np.where(after < rows, before, after)
        share = np.where(after > before, (rows - before) / np.maximum(after - before, 1), 0.0)
        return cls(rows, before, after, share.astype(np.float32))


def interpolate_rows(rows: Features, lost: Mask) -> Features:
    """Replace lost rows by linear interpolation between the intact ones around them; ends repeat the nearest.

    >>> rows = np.array([[0], [9], [9], [3], [9]], np.float32)
    >>> interpolate_rows(rows, np.array([False, True, True, False, True])).ravel().tolist()
    [0.0, 1.0, 2.0, 3.0, 3.0]
    """
    gaps = RowInterpolation.over(lost)
    out = np.array(rows)
    before, after = rows[gaps.before], rows[gaps.after]
    out[gaps.lost] = before + (after - before) * gaps.share[:, None]
    return out


def nearest_undamaged(damaged: Mask) -> Indices:
    """Return (T,) the nearest undamaged frame of each frame, the earlier of two; itself if all are damaged.

    >>> nearest_undamaged(np.array([True, False, True, True, True, False])).tolist()
    [1, 1, 1, 1, 5, 5]
    """
    nearest = np.arange(len(damaged))
    if damaged.all():
        return nearest
    gaps = RowInterpolation.over(damaged)
    nearest[gaps.lost] = np.where(gaps.lost - gaps.before <= gaps.after - gaps.lost, gaps.before, gaps.after)
    # At an end, before and after are the same row.
    return nearest
