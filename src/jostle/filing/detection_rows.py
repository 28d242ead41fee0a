"""Detections in JSON, turned into columns as the parser meets them, so that no file becomes a million objects."""

from __future__ import annotations

from array import array
from typing import Any, Final

from jostle.filing.text import RepeatedKey, TooMany


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
