"""Columns of detections, filled while JSON is parsed, so that a large file does not become a million objects."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from jostle.core.types.predictions import Predictions
from jostle.errors import DataError
from jostle.io.files.text import RepeatedKey, TooManyObjects
from jostle.io.files.video_ids import normalize_id


class _Row:
    """Placeholder in the parsed document for a detection that was moved to the columns."""

    def __repr__(self) -> str:
        return "a detection"


ROW: Final = _Row()
_NUMBERS = frozenset((int, float))
_LABELS = frozenset((int, str))
# Each remaining object takes about 400 bytes.
MAX_OTHERS = 4_000_000


class DetectionRows:
    """Columns of every `{"label", "segment": [start, end], "score"}` in a document, in the order of the file.

    Attributes:
        start: seconds, as the file has them.
        end: seconds.
        score: any number, also NaN and infinities, which the reader refuses with their location.
        code: an index into `labels`.
        labels: labels by index, text or whole numbers.

    >>> rows = DetectionRows()
    >>> rows.collect([("label", "Jump"), ("segment", [1.5, 2]), ("score", 0.9)])
    a detection
    >>> rows.collect([("label", "Jump"), ("score", 0.9)])
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

    def collect(self, pairs: list[tuple[str, Any]]) -> Any:
        """Move a well-formed detection to the columns and return `ROW`; return any other object as it is."""
        document = dict(pairs)
        if len(document) < len(pairs):
            raise RepeatedKey
        try:
            start, end = document["segment"]
            score, label = document["score"], document["label"]
        except (KeyError, TypeError, ValueError):
            self._others += 1
            if self._others > MAX_OTHERS:
                raise TooManyObjects(MAX_OTHERS) from None
            return document
        # Types are compared exactly: true is not a number, and 1.0 would have the same key as 1 among the labels.
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
        return document


_MAX_EXAMPLES = 3
_MAX_DIGITS = 18
_TYPES = {"video": np.int32, "start": np.float64, "end": np.float64, "label": np.int32, "score": np.float64}


class NameIndex:
    """Indices of names in the order of their first appearance; ids are normalized.

    >>> index = NameIndex()
    >>> index["b"], index["a"], index["b"], list(index.names)
    (0, 1, 0, ['b', 'a'])
    """

    def __init__(self, *, ids: bool = False) -> None:
        self.names: dict[str, int] = {}
        self._by_spelling: dict[str, int] = {}
        self._ids = ids

    def __getitem__(self, spelling: str) -> int:
        index = self._by_spelling.get(spelling)
        if index is None:
            name = normalize_id(spelling) if self._ids else spelling
            index = self._by_spelling[spelling] = self.names.setdefault(name, len(self.names))
        return index


def build_predictions(
    path: str | os.PathLike[str],
    *,
    videos: Sequence[str],
    labels: Sequence[str | int],
    columns: Mapping[str, Any],
    where: Callable[[int], str],
    fix: bool,
    left_out: dict[str, int] | None = None,
) -> Predictions:
    """Check columns and build predictions from them.

    Args:
        labels: table of column `label`: names or numbers, not both.
        columns: `video`, `start`, `end`, `label`, `score`, as arrays or lists.
        where: describes the detection in a row, for messages.
        fix: drop rows with a number that is not finite instead of refusing the file.

    Raises:
        DataError: F40 with the count and the first rows; F45 for labels of two kinds or without a name.
    """
    left_out = dict(left_out or {})
    arrays: dict[str, npt.NDArray[Any]] = {name: np.asarray(columns[name], dtype) for name, dtype in _TYPES.items()}
    bad = ~(np.isfinite(arrays["start"]) & np.isfinite(arrays["end"]) & np.isfinite(arrays["score"]))
    if bad.any():
        rows = np.flatnonzero(bad)
        if not fix:
            examples = [
                f"{where(row)} {_describe_not_finite(arrays, row)}" for row in rows[: _MAX_EXAMPLES + 1].tolist()
            ]
            more = f" and {len(rows) - _MAX_EXAMPLES} more" if len(rows) > _MAX_EXAMPLES else ""
            raise DataError(
                f"{path}: {len(rows)} of {len(bad)} detections hold a number that is not finite: "
                f"{'; '.join(examples[:_MAX_EXAMPLES])}{more}; correct them, or drop them with fix",
                fault="F40",
            )
        left_out["not finite, dropped"] = left_out.get("not finite, dropped", 0) + len(rows)
        arrays = {name: values[~bad] for name, values in arrays.items()}
    numbers = [label for label in labels if isinstance(label, int)]
    if numbers and len(numbers) < len(labels):
        name = next(label for label in labels if isinstance(label, str))
        raise DataError(
            f"{path}: some labels are numbers ({numbers[0]}) and some are names ({name!r}); use one kind", fault="F45"
        )
    blank = [label for label in labels if isinstance(label, str) and not label.strip()]
    negative = [number for number in numbers if number < 0]
    if blank or negative:
        raise DataError(f"{path}: {(blank or negative)[0]!r} is not a label; name the class", fault="F45")
    return Predictions(
        videos=tuple(videos), classes=tuple(map(str, labels)), numbered=bool(numbers), left_out=left_out, **arrays
    )


def class_number(text: str) -> int | None:
    """Parse a class number; None if the text is not one or too long.

    >>> class_number("7"), class_number("-7"), class_number("9" * 5000)
    (7, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


def numbers_or_names(labels: Sequence[str]) -> list[str | int]:
    """Convert labels of a file without types: integers if all of them are, names otherwise.

    >>> numbers_or_names(["7", "12"]), numbers_or_names(["7", "Jump"]), numbers_or_names(["007"])
    ([7, 12], ['7', 'Jump'], ['007'])
    """
    if labels and all((number := class_number(label)) is not None and str(number) == label for label in labels):
        return [int(label) for label in labels]
    return list(labels)


def _describe_not_finite(columns: Mapping[str, npt.NDArray[Any]], row: int) -> str:
    values = {name: float(columns[name][row]) for name in ("start", "end", "score")}
    return "has " + ", ".join(f"{name} {value}" for name, value in values.items() if not np.isfinite(value))
