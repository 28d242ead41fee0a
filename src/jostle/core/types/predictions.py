"""Predictions of a detector for many videos, as columns with a row for each detection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.core.tables import data_frame
from jostle.core.types.columns import Floats, Indices, check_finite, check_rows, set_columns
from jostle.core.types.segments import Segments


@dataclass(frozen=True, eq=False)
class Predictions:
    """Detections in many videos, as columns.

    A segment may be anything finite: evaluators count a reversed or empty one as a false alarm, they do not drop it.

    Attributes:
        videos: ids in normal form, also of videos in which nothing was found.
        classes: the names that `label` points into; where `numbered`, the numbers a detector gave, as text.
        video: (N,) int32, an index into `videos`.
        start: (N,) float64 seconds.
        end: (N,) float64 seconds.
        label: (N,) int32, an index into `classes`.
        score: (N,) float64, larger is more confident; not necessarily a probability.
        numbered: whether labels are class numbers that only the ground truth can name.
        left_out: what the reader dropped on request, and how often.

    >>> found = Predictions(("a",), ("Jump",), [0, 0], [1.0, 4.0], [2.0, 6.0], [0, 0], [0.9, 0.5])
    >>> len(found), found
    (2, Predictions(2 in 1 video, 1 class))
    """

    videos: tuple[str, ...]
    classes: tuple[str, ...]
    video: Indices
    start: Floats
    end: Floats
    label: Indices
    score: Floats
    numbered: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = set_columns(self, _COLUMNS)
        object.__setattr__(self, "videos", tuple(self.videos))
        object.__setattr__(self, "classes", tuple(self.classes))
        check_rows(self, columns)
        for name in ("start", "end", "score"):
            check_finite(columns[name], name)

    @classmethod
    def from_segments(cls, segments_by_video: Mapping[str, Segments]) -> Predictions:
        """Create predictions from the scored segments of each video."""
        classes = tuple(dict.fromkeys(name for segments in segments_by_video.values() for name in segments.classes))
        index = {name: i for i, name in enumerate(classes)}
        parts = list(segments_by_video.values())
        labels = [np.array([index[name] for name in s.classes], np.int32)[s.label] for s in parts if len(s)]
        return cls(
            videos=tuple(segments_by_video),
            classes=classes,
            video=np.repeat(np.arange(len(parts), dtype=np.int32), [len(s) for s in parts]),
            start=np.concatenate([np.zeros(0), *(s.start for s in parts)]),
            end=np.concatenate([np.zeros(0), *(s.end for s in parts)]),
            label=np.concatenate([np.zeros(0, np.int32), *labels]),
            score=np.concatenate([np.zeros(0), *(np.ones(len(s)) if s.score is None else s.score for s in parts)]),
        )

    def __len__(self) -> int:
        return len(self.score)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each detection.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        names, labels = np.array(self.videos, object), np.array(self.classes, object)
        times = {"start": self.start, "end": self.end}
        return data_frame({"video": names[self.video], **times, "label": labels[self.label], "score": self.score})

    def __repr__(self) -> str:
        videos, classes = len(self.videos), len(self.classes)
        return (
            f"Predictions({len(self)} in {videos} video{'s' * (videos != 1)}, {classes} class{'es' * (classes != 1)})"
        )


_COLUMNS = {"video": np.int32, "start": np.float64, "end": np.float64, "label": np.int32, "score": np.float64}
