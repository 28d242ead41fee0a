"""Actions that a detector found in videos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.predictions import Predictions


@dataclass(frozen=True, eq=False)
class DetectedActions(Result):
    """Actions that a detector found, and what was done to the videos before."""

    predictions: Predictions
    out: Path | None = None  # file that they were written to
    annotated: int | None = None  # number of annotated videos; None without annotations
    mended_by: str | None = None  # who found damaged frames; None without mending
    damaged: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # damaged frames and all frames, by video

    def tables(self) -> tuple[Table, ...]:
        """Return the detections of all videos, unless they are in a file."""
        columns = (
            *(Column("video"), Column("start", "decimal", 2), Column("end", "decimal", 2)),
            *(Column("score", "decimal", 4), Column("label")),
        )
        return (Table("", columns, tuple(self._rows() if self.out is None else ())),)

    def _rows(self) -> list[tuple[str, float, float, float, str]]:
        found = self.predictions
        columns = (found.video, found.start, found.end, found.score, found.label)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            (found.videos[video], start, end, score, found.classes[label]) for video, start, end, score, label in rows
        ]

    def notes(self) -> tuple[str, ...]:
        """Return which videos are missing, and how much was written."""
        found, notes = self.predictions, []
        if self.annotated is not None and len(found.videos) < self.annotated:
            notes.append(f"{self.annotated - len(found.videos)} of {self.annotated} videos are not here")
        if self.out is not None:
            notes.append(f"{len(found)} segments in {len(found.videos)} videos")
        return tuple(notes)

    def written(self) -> tuple[Path, ...]:
        """Return the file that they were written to."""
        return () if self.out is None else (self.out,)

    def to_dict(self) -> dict[str, Any]:
        """Return the detections in ActivityNet's format."""
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in self.predictions.videos}
        for video, start, end, score, label in self._rows():
            results[video].append({"label": label, "segment": [start, end], "score": score})
        damaged = {name: list(counts) for name, counts in self.damaged.items()}
        used = {} if self.mended_by is None else {"mended": {"by": self.mended_by, "damaged_of_frames": damaged}}
        return {"version": "1", "results": results, "external_data": used}
