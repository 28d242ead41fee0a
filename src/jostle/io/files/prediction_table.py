"""Detections in JSON, turned into columns as the parser meets them, so that no file becomes a million objects."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from jostle.core.types.predictions import Predictions
from jostle.errors import DataError
from jostle.io.files.text import RepeatedKey, TooMany
from jostle.io.files.video_ids import normal_id


class _Row:
    """Stands in the parsed document for a detection that went into the columns."""

    def __repr__(self) -> str:
        return "a detection"


ROW: Final = _Row()
_NUMBERS = frozenset((int, float))
_LABELS = frozenset((int, str))
# Each object that is kept as one takes some four hundred bytes.
MAX_OTHERS = 4_000_000


class DetectionRows:
    """Columns of every `{"label", "segment": [start, end], "score"}` in a document, in the order of the file.

    Attributes:
        start: seconds, as the file has them.
        end: seconds.
        score: any number; NaN and infinities too, for the reader to refuse with the place.
        code: an index into `labels`.
        labels: labels by index, text or whole numbers.

    >>> rows = DetectionRows()
    >>> rows.take([("label", "Jump"), ("segment", [1.5, 2]), ("score", 0.9)])
    a detection
    >>> rows.take([("label", "Jump"), ("score", 0.9)])
    {'label': 'Jump', 'score': 0.9}
    >>> len(rows), rows.end.tolist(), list(rows.labels)
    (1, [2.0], ['Jump'])
    """

    def __init__(self) -> None:
        self.start = array("d")
        self.end = array("d")
        self.score = array("d")
        self.code = array("i")
        self.labels: dict[str | int, int] = {}
        self._others = 0

    def __len__(self) -> int:
        return len(self.code)

    def take(self, pairs: list[tuple[str, Any]]) -> Any:
        """`ROW` for a well-formed detection, and any other object as it is."""
        made = dict(pairs)
        if len(made) < len(pairs):
            raise RepeatedKey
        try:
            start, end = made["segment"]
            score, label = made["score"], made["label"]
        except (KeyError, TypeError, ValueError):
            self._others += 1
            if self._others > MAX_OTHERS:
                raise TooMany(MAX_OTHERS) from None
            return made
        # Types are compared exactly: true is no number, and 1.0 would share the place of 1 among the labels.
        if (
            type(start) in _NUMBERS
            and type(end) in _NUMBERS
            and type(score) in _NUMBERS
            and type(label) in _LABELS
            and label != ""
        ):
            code = self.labels.get(label)
            if code is None:
                code = self.labels[label] = len(self.labels)
            self.start.append(start)
            self.end.append(end)
            self.score.append(score)
            self.code.append(code)
            return ROW
        return made


_SHOWN = 3
_MAX_DIGITS = 18
_TYPES = {"video": np.int32, "start": np.float64, "end": np.float64, "label": np.int32, "score": np.float64}


class Places:
    """Indices of names in the order in which they first appear, ids in their normal form.

    >>> places = Places()
    >>> places["b"], places["a"], places["b"], list(places.names)
    (0, 1, 0, ['b', 'a'])
    """

    def __init__(self, *, ids: bool = False) -> None:
        self.names: dict[str, int] = {}
        self._spelled: dict[str, int] = {}
        self._ids = ids

    def __getitem__(self, spelled: str) -> int:
        known = self._spelled.get(spelled)
        if known is None:
            name = normal_id(spelled) if self._ids else spelled
            known = self._spelled[spelled] = self.names.setdefault(name, len(self.names))
        return known


def finished_predictions(
    path: str | os.PathLike[str],
    *,
    videos: Sequence[str],
    labels: Sequence[str | int],
    columns: Mapping[str, Any],
    where: Callable[[int], str],
    fix: bool,
    left_out: dict[str, int] | None = None,
) -> Predictions:
    """Predictions of these columns.

    Args:
        labels: what column `label` points into: names, or numbers, and not both.
        columns: `video`, `start`, `end`, `label`, `score`, as arrays or lists.
        where: which detection a row is, as messages say it.
        fix: drop rows with a number that is not finite instead of refusing the file.

    Raises:
        DataError: F40 with the count and the first places; F45 for labels of two kinds or without a name.
    """
    left_out = dict(left_out or {})
    made: dict[str, npt.NDArray[Any]] = {name: np.asarray(columns[name], dtype) for name, dtype in _TYPES.items()}
    bad = ~(np.isfinite(made["start"]) & np.isfinite(made["end"]) & np.isfinite(made["score"]))
    if bad.any():
        rows = np.flatnonzero(bad)
        if not fix:
            examples = [f"{where(row)} {_spoilt(made, row)}" for row in rows[: _SHOWN + 1].tolist()]
            more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
            raise DataError(
                f"{path}: {len(rows)} of {len(bad)} detections hold a number that is not finite: "
                f"{'; '.join(examples[:_SHOWN])}{more}; correct them, or let fix drop them",
                fault="F40",
            )
        left_out["not finite, dropped"] = left_out.get("not finite, dropped", 0) + len(rows)
        made = {name: values[~bad] for name, values in made.items()}
    numbers = [label for label in labels if isinstance(label, int)]
    if numbers and len(numbers) < len(labels):
        name = next(label for label in labels if isinstance(label, str))
        raise DataError(
            f"{path}: some labels are numbers ({numbers[0]}) and some are names ({name!r}); use one kind",
            fault="F45",
        )
    blank = [label for label in labels if isinstance(label, str) and not label.strip()]
    negative = [number for number in numbers if number < 0]
    if blank or negative:
        raise DataError(f"{path}: {(blank or negative)[0]!r} is no label; name the class", fault="F45")
    return Predictions(
        videos=tuple(videos),
        classes=tuple(map(str, labels)),
        numbered=bool(numbers),
        left_out=left_out,
        **made,
    )


def class_number(text: str) -> int | None:
    """The class number a word holds, or None if it holds none, or one too long to be one.

    >>> class_number("7"), class_number("-7"), class_number("9" * 5000)
    (7, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


def numbers_or_names(labels: Sequence[str]) -> list[str | int]:
    """Labels from a file without types: whole numbers if all of them are, otherwise names.

    >>> numbers_or_names(["7", "12"]), numbers_or_names(["7", "Jump"]), numbers_or_names(["007"])
    ([7, 12], ['7', 'Jump'], ['007'])
    """
    if labels and all((number := class_number(label)) is not None and str(number) == label for label in labels):
        return [int(label) for label in labels]
    return list(labels)


def _spoilt(columns: Mapping[str, npt.NDArray[Any]], row: int) -> str:
    values = {name: float(columns[name][row]) for name in ("start", "end", "score")}
    return "has " + ", ".join(f"{name} {value}" for name, value in values.items() if not np.isfinite(value))
