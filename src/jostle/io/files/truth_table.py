"""Ground truth in the making: rows of a file are checked and collected, and known variants recognised."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from jostle.core.formatting import describe
from jostle.core.types.truth import CHARACTERISTICS, Spans, Truth
from jostle.errors import DataError
from jostle.io.files.video_ids import normalize_id, quote_name

# (videos, instances, classes); most variants of THUMOS14 differ by 26 instances after the end of their video.
_VARIANTS = {
    (213, 3358, 20): "THUMOS14 test, official: 213 videos, 3358 instances",
    (212, 3358, 20): "THUMOS14 test, 212 videos, 3358 instances (26 after the end of their video)",
    (212, 3332, 20): "THUMOS14 test, 212 videos, 3332 instances (without those after the end of their video)",
    (211, 3325, 20): "THUMOS14 test, 211 videos, 3325 instances (also without video_test_0000270)",
    (200, 3003, 20): "THUMOS14 validation, 200 videos, 3003 instances",
    (412, 6335, 20): "THUMOS14 validation and test, 412 videos, 6335 instances",
    (4926, 7654, 200): "ActivityNet 1.3 validation, 4926 videos, 7654 instances",
}
_ACTIVITYNET_AVAILABLE = (4728, 200)


def variant_of(truth: Truth) -> str | None:
    """Return the known variant of THUMOS14 or ActivityNet that `truth` is, by its counts, or None.

    >>> variant_of(Truth(("a",), ("Jump",), [0], [1.0], [2.0], [0])) is None
    True
    """
    videos, instances, classes = len(truth.videos), len(truth), len(truth.classes)
    if (videos, classes) == _ACTIVITYNET_AVAILABLE:
        return f"ActivityNet 1.3 validation, the {videos} videos still available, {instances} instances"
    return _VARIANTS.get((videos, instances, classes))


# Without exponents, which a fraction would expand to any number of digits.
_NUMBER_TEXT = re.compile(r"\s*\d{1,12}(\.\d{1,12}|/\d{1,12})?\s*")
_NO_SEGMENT = "not a segment, dropped"


@dataclass(frozen=True)
class TruthOptions:
    """Options for reading ground truth."""

    subset: str | None = None  # only videos of this subset, whatever the case of its letters
    fix: bool = False  # drop or clip what cannot be used, and count it, instead of refusing the file
    # The one video whose instances are read; others are listed without instances, and not checked
    only: str | None = None


@dataclass
class _Video:
    index: int
    subset: str
    duration: float
    fps: float


@dataclass
class TruthTable:
    """Collects rows of ground truth from one file, in its order."""

    path: str | os.PathLike[str]
    options: TruthOptions
    videos: dict[str, _Video] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._original_ids: dict[str, str] = {}
        self._rows: list[tuple[int, float, float, int]] = []
        self._classes: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._extras: dict[str, dict[int, float]] = {}
        self._annotators: dict[int, list[list[float]]] = {}
        self._spans: list[tuple[int, float, float]] = []
        self._instances: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def open_video(self, spelled: str, *, subset: object = "", duration: object = None, fps: object = None) -> str:
        """Add a video that the file lists once, and return its normal id.

        Raises:
            DataError: if it is listed already, in whatever Unicode form.
        """
        video_id = normalize_id(spelled)
        if video_id in self.videos:
            raise DataError(
                f"{self.path}: the ids {self._original_ids[video_id]!a} and {spelled!a} are one id in two Unicode "
                "forms; keep one of them",
                fault="F22",
            )
        return self.row_video(spelled, subset=subset, duration=duration, fps=fps)

    def row_video(self, spelled: str, *, subset: object = "", duration: object = None, fps: object = None) -> str:
        """Return the normal id of a row's video; the attributes in its first row count."""
        video_id = normalize_id(spelled)
        if video_id not in self.videos:
            name = subset if isinstance(subset, str) else ""
            checked = self._is_selected(video_id, name)
            self._original_ids[video_id] = spelled
            self.videos[video_id] = _Video(
                index=len(self.videos),
                subset=name,
                duration=self._parse_positive(video_id, "duration", duration, "seconds") if checked else math.nan,
                fps=self._parse_positive(video_id, "fps", fps, "frames per second") if checked else math.nan,
            )
        return video_id

    def _is_selected(self, video_id: str, subset: str) -> bool:
        options = self.options
        if options.only is not None and video_id != options.only:
            return False
        return options.subset is None or subset.casefold() == options.subset.casefold()

    def add(
        self,
        video_id: str,
        label: object,
        segment: object,
        *,
        where: str,
        label_id: object = None,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        """Add an annotated instance to the table.

        Args:
            label: its class; anything but text is refused.
            segment: [start, end] in seconds, as the file has it.
            where: name of the instance for messages, such as `annotation 3`.
            label_id: the file's own number of the class.
            facts: its characteristics by DETAD's names.
        """
        video = self.videos[video_id]
        self._instances[video.subset] += 1
        if not self._is_selected(video_id, video.subset):
            return
        if not (isinstance(label, str) and label.strip()):
            self._refuse(video_id, f"the label of {where} is {describe(label)}, not a class name", "no class, dropped")
            return
        times = self._parse_segment(video_id, segment, where)
        if times is None:
            return
        row = len(self._rows)
        self._rows.append((video.index, *times, self._classes.setdefault(label, len(self._classes))))
        if label_id is not None:
            self._set_label_id(video_id, label, label_id, where)
        if facts:
            self._add_characteristics(video_id, row, facts, where)

    def add_ambiguous(self, video_id: str, segment: object, *, where: str) -> None:
        """Add a span in which a detection is neither right nor wrong."""
        video = self.videos[video_id]
        if self._is_selected(video_id, video.subset):
            times = self._parse_segment(video_id, segment, where)
            if times is not None:
                self._spans.append((video.index, *times))

    def set_label_ids(self, ids: Mapping[str, int]) -> None:
        """Set the numbers of all classes from a list."""
        for label, number in ids.items():
            self._set_label_id("", label, number, "the list of classes")

    def refuse(self, video_id: str, message: str, *, fault: str = "F30", dropped: str = _NO_SEGMENT) -> None:
        """Raise a DataError about an entry that is not an instance, or with `fix` count it."""
        if self._is_selected(video_id, self.videos[video_id].subset):
            self._refuse(video_id, message, dropped, fault)

    def finish(self) -> Truth:
        """Return the collected ground truth."""
        if self.options.subset is not None:
            check_subset(self.path, Counter(v.subset for v in self.videos.values()), self.options.subset)
        names = [
            name for name, video in self.videos.items() if self.options.only or self._is_selected(name, video.subset)
        ]
        if not self._rows and self.options.only is None:
            self._refuse_empty(len(names))
        index = np.full(len(self.videos), -1, np.int32)
        index[[self.videos[name].index for name in names]] = np.arange(len(names))
        columns = np.array(self._rows, np.float64).reshape(-1, 4)
        spans = np.array(self._spans, np.float64).reshape(-1, 3)
        return Truth(
            videos=tuple(names),
            classes=tuple(self._classes),
            video=index[columns[:, 0].astype(np.int32)],
            start=columns[:, 1].copy(),
            end=columns[:, 2].copy(),
            label=columns[:, 3].astype(np.int32),
            subsets=tuple(self.videos[name].subset for name in names),
            duration=np.array([self.videos[name].duration for name in names]),
            fps=np.array([self.videos[name].fps for name in names]),
            label_ids=self._label_ids(),
            characteristics={
                name: np.array([values.get(row, math.nan) for row in range(len(columns))])
                for name in CHARACTERISTICS
                if (values := self._extras.get(name))
            },
            all_segments=tuple(
                np.array(self._annotators.get(row, []), np.float64).reshape(-1, 2) for row in range(len(columns))
            )
            if self._annotators
            else None,
            ambiguous=Spans(index[spans[:, 0].astype(np.int32)], spans[:, 1].copy(), spans[:, 2].copy()),
            left_out=dict(self._left_out),
        )

    def _refuse(self, video_id: str, message: str, dropped: str, fault: str = "F30") -> None:
        if not self.options.fix:
            raise DataError(f"{self.path}: video {quote_name(video_id)}: {message}", fault=fault)
        self._left_out[dropped] += 1

    def _parse_segment(self, video_id: str, segment: object, where: str) -> tuple[float, float] | None:
        fault, dropped = segment_fault(segment)
        if not fault:
            assert isinstance(segment, list | tuple)
            return float(segment[0]), float(segment[1])
        self._refuse(
            video_id,
            f"the segment of {where} {fault}; a segment needs 0 <= start <= end; correct or remove it, or use fix",
            dropped,
        )
        if "clipped" in dropped:
            assert isinstance(segment, list | tuple)
            return 0.0, float(segment[1])
        return None

    def _set_label_id(self, video_id: str, label: str, number: object, where: str) -> None:
        location = f"{self.path}: video {quote_name(video_id)}: {where}" if video_id else f"{self.path}: {where}"
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise DataError(
                f"{location} has {describe(number)} as 'label_id', not a number from 0; correct or remove it",
                fault="F36",
            )
        other_id, other_name = self._ids.setdefault(label, number), self._names.setdefault(number, label)
        if (other_id, other_name) != (number, label):
            before = f"{other_name!r}" if other_name != label else f"{label!r} with {other_id}"
            raise DataError(
                f"{location} gives class {label!r} the 'label_id' {number}, which contradicts {before} before; "
                "give each class one number of its own",
                fault="F36",
            )

    def _label_ids(self) -> tuple[int, ...] | None:
        missing = [name for name in self._classes if name not in self._ids]
        if not self._ids or len(missing) == len(self._classes):
            return None
        if missing:
            raise DataError(
                f"{self.path}: class {missing[0]!r} has no 'label_id' while others have; give it one, or none to all",
                fault="F36",
            )
        return tuple(self._ids[name] for name in self._classes)

    def _add_characteristics(self, video_id: str, row: int, facts: Mapping[str, object], where: str) -> None:
        for name in CHARACTERISTICS:
            value = facts.get(name)
            if value is None and name == "num-instances":
                value = facts.get("num_instances")  # spelling of DETAD's THUMOS14 validation file
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise DataError(
                    f"{self.path}: video {quote_name(video_id)}: {name!r} of {where} is {describe(value)}, not a "
                    "number; correct or remove it",
                    fault="F30",
                )
            self._extras.setdefault(name, {})[row] = float(value)
        segments = facts.get("all-segments")
        if segments is None:
            return
        faults = [f for s in segments if (f := segment_fault(s)[0])] if isinstance(segments, list) else ["is no list"]
        if faults:
            raise DataError(
                f"{self.path}: video {quote_name(video_id)}: a segment in 'all-segments' of {where} {faults[0]}; "
                "correct or remove it",
                fault="F30",
            )
        assert isinstance(segments, list)
        self._annotators[row] = [[float(start), float(end)] for start, end in segments]

    def _parse_positive(self, video_id: str, name: str, value: object, unit: str) -> float:
        """Parse a positive number; NaN if it is missing, or is a rate of 0.

        A duration of 0 is refused: no instance lies in such a video, and placements and diagnoses would leave it out
        without a word.
        """
        number = value
        if isinstance(value, str) and _NUMBER_TEXT.fullmatch(value):
            with contextlib.suppress(ZeroDivisionError):
                number = Fraction(value)
        if isinstance(number, bool) or not isinstance(number, int | float | Fraction | None):
            number = math.nan
        if number == 0 and name == "duration" and self.options.fix:
            self._left_out["a duration of 0, taken as unknown"] += 1
            return math.nan
        if number is None or (number == 0 and name != "duration"):
            return math.nan
        if not (math.isfinite(number) and number > 0):
            raise DataError(
                f"{self.path}: video {quote_name(video_id)}: '{name}' is {describe(value)}, not a positive number of "
                f"{unit}; correct or remove it",
                fault="F128" if number == 0 else "F34",
            )
        return float(number)

    def _refuse_empty(self, videos: int) -> None:
        dropped = f" (dropped: {dict(self._left_out)})" if self._left_out else ""
        have = ", ".join(f"{name or '(none)'} ({count})" for name, count in sorted(self._instances.items()))
        subset = self.options.subset
        where = "the file" if subset is None else f"subset {subset!r}"
        raise DataError(
            f"{self.path}: none of the {videos} video(s) in {where} has an instance{dropped}; "
            f"subsets with instances: {have or 'none'}",
            fault="F29",
        )


def segment_fault(segment: object) -> tuple[str, str]:
    """Return what is wrong with a segment and how dropping it is counted; empty strings if it is valid.

    A segment of zero length is valid: datasets have them, and protocols decide.

    >>> segment_fault([1.5, 2]), segment_fault([2, 1])
    (('', ''), ('ends at 1, before it starts at 2', 'reversed, dropped'))
    """
    if not isinstance(segment, list | tuple):
        return f"is {describe(segment)}, not [start, end] in seconds", _NO_SEGMENT
    if len(segment) != 2:
        return f"has {len(segment)} value(s), not a start and an end", _NO_SEGMENT
    for value in segment:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"holds {describe(value)}, not a number of seconds", _NO_SEGMENT
        if not math.isfinite(value):
            return f"holds {describe(value)}, which is not finite", "not finite, dropped"
    start, end = segment
    if end < start:
        return f"ends at {end}, before it starts at {start}", "reversed, dropped"
    if start < 0:
        outside = end < 0
        return f"starts at {start}, before the video", (
            "before the video, dropped" if outside else "start before the video, clipped"
        )
    return "", ""


def check_subset(path: str | os.PathLike[str], counts: Counter[str], subset: str) -> None:
    """Raise a DataError that lists the subsets and their sizes if `subset` is not among them."""
    if subset.casefold() not in map(str.casefold, counts):
        present = ", ".join(f"{name or '(none)'} ({count})" for name, count in sorted(counts.items()))
        raise DataError(
            f"{path}: no video is in subset {subset!r}; name one of those present: {present or 'none'}", fault="F29"
        )
