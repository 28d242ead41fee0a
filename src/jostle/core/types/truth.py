"""Ground truth of many videos, as columns with a row for each annotated instance."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.core.tables import data_frame
from jostle.core.types.clip import check_rate
from jostle.core.types.columns import (
    Flags,
    Floats,
    Indices,
    check_finite,
    check_indices,
    check_lengths,
    check_rows,
    column,
    select_names,
    set_columns,
)
from jostle.core.types.segments import Segments
from jostle.errors import BadValue

CHARACTERISTICS = ("context-size", "context-distance", "agreement", "coverage", "length", "num-instances")


@dataclass(frozen=True, eq=False)
class Spans:
    """Unlabelled spans of videos, such as THUMOS14's ambiguous ones."""

    video: Indices
    start: Floats
    end: Floats

    def __post_init__(self) -> None:
        check_lengths(set_columns(self, {"video": np.int32, "start": np.float64, "end": np.float64}))

    @classmethod
    def none(cls) -> Spans:
        """Create an empty set of spans."""
        return cls(np.zeros(0, np.int32), np.zeros(0), np.zeros(0))

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class Truth:
    """Annotated instances of many videos.

    Attributes:
        videos: ids in normal form, in file order, also of videos without an instance.
        classes: the names that `label` points into, in the order in which the file first uses them.
        video: (G,) int32, an index into `videos`.
        start: (G,) float64 seconds, finite, at least 0.
        end: (G,) float64 seconds, not before `start`. Zero length is allowed, as some data sets have it.
        label: (G,) int32, an index into `classes`.
        subsets: the subset of each video as the file spells it, empty where it does not say.
        duration: (V,) float64 seconds, NaN where unknown.
        fps: (V,) float64 frames per second, NaN where unknown.
        label_ids: the file's own number of each class, or None if it gives none.
        characteristics: (G,) float64 by DETAD's name of it, NaN where the file leaves it out.
        all_segments: per instance (k, 2) float64, the annotations of several people; None if there are none.
        ambiguous: stretches in which a detection is neither right nor wrong.
        left_out: what reading or a protocol dropped or clipped, and how often.

    >>> truth = Truth(("a", "b"), ("Jump",), [0, 1], [1.0, 4.0], [2.0, 6.0], [0, 0])
    >>> len(truth), truth.counts.tolist(), truth.fingerprint[:19]
    (2, [2], 'sha256:e91fab475024')
    """

    task: ClassVar[str] = "detection"  # that it is the truth of
    holds: ClassVar[str] = "segments"
    unit: ClassVar[str] = "instances"

    videos: tuple[str, ...]
    classes: tuple[str, ...]
    video: Indices
    start: Floats
    end: Floats
    label: Indices
    subsets: tuple[str, ...] = ()
    duration: Floats = field(default_factory=lambda: np.zeros(0))
    fps: Floats = field(default_factory=lambda: np.zeros(0))
    label_ids: tuple[int, ...] | None = None
    characteristics: Mapping[str, Floats] = field(default_factory=dict)
    all_segments: tuple[npt.NDArray[np.float64], ...] | None = None
    ambiguous: Spans = field(default_factory=Spans.none)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "videos", tuple(self.videos))
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "subsets", tuple(self.subsets) or ("",) * len(self.videos))
        columns = set_columns(self, {"video": np.int32, "start": np.float64, "end": np.float64, "label": np.int32})
        for name in ("duration", "fps"):
            values = column(getattr(self, name), name, np.float64)
            object.__setattr__(self, name, values if len(values) else column([np.nan] * len(self.videos), name, float))
        known = {name: column(values, name, np.float64) for name, values in self.characteristics.items()}
        object.__setattr__(self, "characteristics", known)
        self._check(columns | known)

    def _check(self, columns: Mapping[str, npt.NDArray[np.float64]]) -> None:
        check_rows(self, columns)
        check_indices(self.ambiguous.video, "video of ambiguous stretches", len(self.videos))
        check_finite(self.start, "start")
        check_finite(self.end, "end")
        wrong = (self.start < 0) | (self.end < self.start)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise BadValue(
                f"instance {row} is [{self.start[row]}, {self.end[row]}): it needs 0 <= start <= end, in seconds"
            )
        for name, values, reference in (
            ("subsets", self.subsets, self.videos),
            ("duration", self.duration, self.videos),
            ("fps", self.fps, self.videos),
            ("label_ids", self.label_ids, self.classes),
            ("all_segments", self.all_segments, self.start),
        ):
            if values is not None and len(values) != len(reference):
                raise BadValue(f"{name!r} must have {len(reference)} entries, got {len(values)}")

    @classmethod
    def from_segments(cls, actions: Mapping[str, Segments]) -> Truth:
        """Create ground truth from the actions of each video."""
        parts = list(actions.values())
        classes = tuple(dict.fromkeys(s.classes[i] for s in parts for i in s.label))
        index = {name: i for i, name in enumerate(classes)}
        return cls(
            videos=tuple(actions),
            classes=classes,
            video=np.repeat(np.arange(len(parts), dtype=np.int32), [len(s) for s in parts]),
            start=np.concatenate([np.zeros(0), *(s.start for s in parts)]),
            end=np.concatenate([np.zeros(0), *(s.end for s in parts)]),
            label=np.array([index[s.classes[i]] for s in parts for i in s.label], np.int32),
        )

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """(C,) number of instances of each class."""
        return np.bincount(self.label, minlength=len(self.classes))

    @cached_property
    def actions(self) -> dict[str, Segments]:
        """Actions of every video for placements, without those of zero length, which cover no frame."""
        actions_by_video = {}
        for v, name in enumerate(self.videos):
            rows = np.flatnonzero((self.video == v) & (self.end > self.start))
            label = self.label[rows].astype(np.int64)
            actions_by_video[name] = Segments(self.start[rows], self.end[rows], label, classes=self.classes)
        return actions_by_video

    def fps_of(self, video: str) -> Fraction | None:
        """Return the frame rate of a video, or None if the annotations lack it."""
        rate = self._rates.get(video)
        return None if rate is None else check_rate(rate)

    @cached_property
    def _rates(self) -> dict[str, float]:
        known = zip(self.videos, self.fps.tolist(), strict=True)
        return {video: rate for video, rate in known if np.isfinite(rate) and rate > 0}

    @property
    def subset(self) -> str | None:
        """The subset that all videos are in; None if there are several or none is given."""
        return self.subsets[0] if self.subsets and self.subsets[0] and len(set(self.subsets)) == 1 else None

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the annotations, which depends neither on the order of the rows nor on the file format."""
        rows = sorted(
            (self.videos[v], self.classes[k], s.hex(), e.hex())
            for v, k, s, e in zip(
                self.video.tolist(), self.label.tolist(), self.start.tolist(), self.end.tolist(), strict=True
            )
        )
        spans = self.ambiguous
        rows += sorted(
            (self.videos[v], "", s.hex(), e.hex())
            for v, s, e in zip(spans.video.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True)
        )
        digest = hashlib.sha256()
        for row in rows:
            digest.update("\0".join(row).encode("utf-8", "surrogateescape") + b"\n")
        return f"sha256:{digest.hexdigest()}"

    def keep(self, rows: Flags, why: str = "") -> Truth:
        """Return the selected instances with all videos and classes; dropped ones are counted under `why`."""
        dropped = int(len(self) - np.count_nonzero(rows))
        if not dropped:
            return self
        left_out = dict(self.left_out)
        if why:
            left_out[why] = left_out.get(why, 0) + dropped
        return replace(
            self,
            video=self.video[rows],
            start=self.start[rows],
            end=self.end[rows],
            label=self.label[rows],
            characteristics={name: values[rows] for name, values in self.characteristics.items()},
            all_segments=self.all_segments
            and tuple(s for s, is_kept in zip(self.all_segments, rows, strict=True) if is_kept),
            left_out=left_out,
        )

    def with_classes(self, names: Sequence[str]) -> Truth:
        """Return the same instances with another list of classes, which may include unused ones.

        Raises:
            BadValue: if a class that occurs is not on it.
        """
        missing = [name for name in self.classes if name not in names]
        if missing:
            raise BadValue(f"the list of classes lacks {', '.join(missing)}")
        index = {name: i for i, name in enumerate(names)}
        label = np.array([index[name] for name in self.classes], np.int32)[self.label]
        known = dict(zip(self.classes, self.label_ids or (), strict=bool(self.label_ids)))
        ids = tuple(known[name] for name in names) if len(known) == len(names) else None
        return replace(self, classes=tuple(names), label=label, label_ids=ids)

    def of_videos(self, names: Collection[str]) -> Truth:
        """Return the annotations of the named videos, with all classes."""
        indices, new_index = select_names(self.videos, names)
        rows, spans = new_index[self.video] >= 0, new_index[self.ambiguous.video] >= 0
        stretches = self.ambiguous
        return replace(
            self.keep(rows),
            videos=tuple(self.videos[i] for i in indices),
            video=new_index[self.video[rows]],
            subsets=tuple(self.subsets[i] for i in indices),
            duration=self.duration[indices],
            fps=self.fps[indices],
            ambiguous=Spans(new_index[stretches.video[spans]], stretches.start[spans], stretches.end[spans]),
        )

    def __len__(self) -> int:
        return len(self.start)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each instance.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        names, labels = np.array(self.videos, object), np.array(self.classes, object)
        times = {"start": self.start, "end": self.end}
        return data_frame({"video": names[self.video], **times, "label": labels[self.label]})

    def __repr__(self) -> str:
        return f"Truth({len(self)} instances in {len(self.videos)} videos, {len(self.classes)} classes)"
