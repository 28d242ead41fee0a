"""Files of objects in frames: true boxes as JSON, `{"classes": [...], "boxes": {frame: [[class, x1, y1, x2, y2]]}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jostle.errors import BadValue, DataError
from jostle.filing.text import describe, read_json
from jostle.filing.writing import write_text
from jostle.types.boxes import Boxes

_ROW = 5  # class, x1, y1, x2, y2


def write_true_boxes(path: Path, classes: Sequence[str], boxes: Mapping[str, Boxes]) -> None:
    """Write the true boxes of frames; whole numbers stay whole."""
    plain = {frame: plain_boxes(found) for frame, found in boxes.items()}
    write_text(path, [json.dumps({"classes": list(classes), "boxes": plain}, indent=0), "\n"])


def plain_boxes(boxes: Boxes) -> list[list[float]]:
    """Boxes as JSON has them, a row each."""
    rows = np.column_stack([boxes.label, boxes.box])
    return [[int(value) if value == int(value) else value for value in row] for row in rows.tolist()]


def read_true_boxes(path: str | Path) -> tuple[tuple[str, ...], dict[str, Boxes]]:
    """The classes, and the true boxes of each frame.

    Raises:
        DataError: if the file holds something else.
    """
    content = read_json(path)
    classes, boxes = content.get("classes"), content.get("boxes")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise DataError(f"{path}: 'classes' has {describe(classes)}, not a list of names", fault="F28")
    if not isinstance(boxes, dict):
        raise DataError(f"{path}: 'boxes' has {describe(boxes)}, not boxes by frame", fault="F28")
    return tuple(classes), {frame: boxes_in(path, frame, rows, len(classes)) for frame, rows in boxes.items()}


def boxes_in(path: str | Path, frame: str, rows: Any, classes: int) -> Boxes:
    """The boxes of one frame from its rows.

    Raises:
        DataError: if they are no boxes of these classes.
    """
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
        raise DataError(f"{path}: {frame!r} has {describe(rows)}, not rows of class, x1, y1, x2, y2", fault="F28")
    table = np.array(rows, np.float64).reshape(-1, _ROW)
    label, box = table[:, 0], table[:, 1:]
    if ((label < 0) | (label >= classes) | (label != np.floor(label))).any():
        raise DataError(f"{path}: {frame!r} has a class that is no number from 0 to {classes - 1}", fault="F28")
    if (box[:, :2] > box[:, 2:]).any():
        raise DataError(f"{path}: {frame!r} has a box that ends before it begins; rows are x1, y1, x2, y2", fault="F28")
    try:
        return Boxes(box, label.astype(np.int64))
    except BadValue as error:
        raise DataError(f"{path}: {frame!r}: {error}", fault=error.fault) from None


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and len(row) == _ROW and all(type(value) in (int, float) for value in row)
