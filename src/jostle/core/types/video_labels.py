"""Classes of whole videos, true or predicted, as columns with a row for each (video, class) pair."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jostle.core.types.columns import Floats, Indices, check_finite, check_rows, select_names, set_columns


@dataclass(frozen=True, eq=False)
class VideoLabels:
    """Classes of videos, or with scores, the classes that a recogniser predicts.

    Attributes:
        videos: ids in normal form.
        classes: the names that `label` points into; where `numbered`, class numbers as text.
        video: (N,) int32, an index into `videos`.
        label: (N,) int32, an index into `classes`.
        score: (N,) float64, or None for the truth.
        numbered: whether labels are class numbers that only a list of classes can name.
        paths: where each video lies, as the file says it; empty if it does not.
        frames: (V,) int32 frames of each video, for lists of image folders; empty otherwise.

    >>> VideoLabels(("a", "b"), ("Jump", "Run"), [0, 1, 1], [0, 0, 1])
    VideoLabels(3 true labels of 2 videos, 2 classes)
    """

    task: ClassVar[str] = "recognition"  # that it is the truth of
    holds: ClassVar[str] = "classes of whole videos"
    unit: ClassVar[str] = "labels"

    videos: tuple[str, ...]
    classes: tuple[str, ...]
    video: Indices
    label: Indices
    score: Floats | None = None
    numbered: bool = False
    paths: tuple[str, ...] = ()
    frames: Indices | tuple[()] = ()

    def __post_init__(self) -> None:
        scores = {} if self.score is None else {"score": np.float64}
        columns = set_columns(self, {"video": np.int32, "label": np.int32, **scores})
        object.__setattr__(self, "videos", tuple(self.videos))
        object.__setattr__(self, "classes", tuple(self.classes))
        check_rows(self, columns)
        if self.score is not None:
            check_finite(self.score, "score")

    def of_videos(self, names: Collection[str]) -> VideoLabels:
        """Return the labels of the named videos, with all classes."""
        indices, new_index = select_names(self.videos, names)
        rows = new_index[self.video] >= 0
        return replace(
            self,
            videos=tuple(self.videos[i] for i in indices),
            video=new_index[self.video[rows]],
            label=self.label[rows],
            score=None if self.score is None else self.score[rows],
            paths=tuple(self.paths[i] for i in indices) if self.paths else (),
            frames=np.asarray(self.frames)[indices] if len(self.frames) else (),
        )

    def __len__(self) -> int:
        return len(self.video)

    def __repr__(self) -> str:
        kind = "true labels" if self.score is None else "scored labels"
        return f"VideoLabels({len(self)} {kind} of {len(self.videos)} videos, {len(self.classes)} classes)"
