"""Labelled segments of a video, with scores if they are predictions, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.tables import Column, Table, data_frame
from jostle.core.types.columns import column
from jostle.errors import BadValue


@dataclass(frozen=True, eq=False)
class Segments:
    """Columns of half-open segments in seconds.

    Attributes:
        start: (N,) float64, at least 0.
        end: (N,) float64, greater than `start`.
        label: (N,) int64, an index into `classes`.
        score: (N,) float64, or None for ground truth.
        classes: the names that `label` points into.

    >>> actions = Segments.from_pairs([(1.0, 2.5), (4.0, 5.0)])
    >>> len(actions), (actions.end - actions.start).tolist()
    (2, [1.5, 1.0])
    """

    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    label: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64] | None = None
    classes: tuple[str, ...] = field(default=("action",))

    def __post_init__(self) -> None:
        for name, dtype in (("start", np.float64), ("end", np.float64), ("label", np.int64)):
            object.__setattr__(self, name, column(np.array(getattr(self, name), dtype), name, dtype))
        if self.score is not None:
            object.__setattr__(self, "score", column(np.array(self.score, np.float64), "score", np.float64))
        object.__setattr__(self, "classes", tuple(self.classes))
        self._check()

    def _check(self) -> None:
        columns = [self.start, self.end, self.label] + ([] if self.score is None else [self.score])
        lengths = [len(column) for column in columns]
        if len(set(lengths)) > 1:
            raise BadValue(f"columns of segments must have one length, got {lengths}")
        bad = ~(np.isfinite(self.start) & np.isfinite(self.end) & (self.start >= 0) & (self.start < self.end))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            finite = np.isfinite(self.start[i]) and np.isfinite(self.end[i])
            raise BadValue(
                f"segment {i} is [{self.start[i]}, {self.end[i]}): a segment needs 0 <= start < end, in seconds",
                fault="" if finite else "F40",
            )
        if len(self) and (self.label.min() < 0 or self.label.max() >= len(self.classes)):
            raise BadValue(f"labels must lie in 0..{len(self.classes) - 1}, got {int(self.label.max())}")
        if self.score is not None and not np.isfinite(self.score).all():
            raise BadValue("scores of segments must be finite", fault="F40")

    @classmethod
    def from_pairs(cls, pairs: Iterable[Sequence[float]] | npt.NDArray[Any]) -> Segments:
        """Create unlabelled segments from (start, end) pairs in seconds."""
        rows = np.asarray(list(pairs), dtype=np.float64)
        if rows.size == 0:
            rows = rows.reshape(0, 2)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise BadValue(f"segments must be (start, end) pairs in seconds, got an array of shape {rows.shape}")
        return cls(rows[:, 0], rows[:, 1], np.zeros(len(rows), np.int64))

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> Segments:
        score = None if self.score is None else self.score[rows]
        return Segments(self.start[rows], self.end[rows], self.label[rows], score, self.classes)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each segment.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        columns = {"start": self.start, "end": self.end, "label": np.array(self.classes, object)[self.label]}
        return data_frame(columns if self.score is None else columns | {"score": self.score})

    def _repr_html_(self) -> str:
        columns = [Column("action"), Column("start s", "decimal", 2), Column("end s", "decimal", 2)]
        names, values = [self.classes[label] for label in self.label], [self.start, self.end]
        if self.score is not None:
            columns.append(Column("score", "decimal"))
            values.append(self.score)
        rows = zip(names, *(one.tolist() for one in values), strict=True)
        return f'<div class="jostle">{Table(repr(self), tuple(columns), tuple(rows)).html()}</div>'

    def __repr__(self) -> str:
        kind = "truth" if self.score is None else "scored"
        return f"Segments({len(self)} {kind}, {len(self.classes)} classes)"
