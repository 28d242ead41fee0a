"""Files of objects in frames: true boxes as JSON, `{"classes": [...], "boxes": {frame: [[class, x1, y1, x2, y2]]}}`."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, DataError
from jostle.io.files.arrays import read_npz
from jostle.io.files.atomic import write_bytes, write_text
from jostle.io.files.text import describe, read_json, read_text

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


MAX_BYTES = 1 << 20  # a frame has a few objects

# The nouns of the thirty classes, in the order of their numbers.
NOUNS = (
    *("n02691156", "n02419796", "n02131653", "n02834778", "n01503061", "n02924116", "n02958343", "n02402425"),
    *("n02084071", "n02121808", "n02503517", "n02118333", "n02510455", "n02342885", "n02374451", "n02129165"),
    *("n01674464", "n02484322", "n03790512", "n02324045", "n02509815", "n02411705", "n01726692", "n02355227"),
    *("n02129604", "n04468005", "n01662784", "n04530566", "n02062744", "n02391049"),
)
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def read_vid_boxes(path: Path) -> Boxes:
    """The true boxes of one frame; a frame without objects has none.

    Raises:
        DataError: if the file is no annotation of a frame of ImageNet-Vid.
    """
    text = read_text(path, max_bytes=MAX_BYTES)
    if "<!" in text:  # entities are defined there, and annotations need none
        raise DataError(f"{path}: has a document type or comments, which annotations of frames do not", fault="F28")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError(f"{path}: is no XML: {error}", fault="F28") from None
    found = [_object(path, one) for one in root.iter("object")]
    try:
        return Boxes(np.array([box for _, box in found]), np.array([label for label, _ in found], np.int64))
    except BadValue as error:
        raise DataError(f"{path}: {error}", fault=error.fault) from None


def _object(path: Path, one: ElementTree.Element) -> tuple[int, list[float]]:
    noun = (one.findtext("name") or "").strip()
    if noun not in NOUNS:
        raise DataError(f"{path}: {noun!r} is the noun of no class of ImageNet-Vid", fault="F28")
    said = [(one.findtext(f"bndbox/{side}") or "").strip() for side in _SIDES]
    try:
        box = [float(side) for side in said]
    except ValueError:
        raise DataError(f"{path}: a {noun} has the box {said}, not {', '.join(_SIDES)}", fault="F28") from None
    if box[0] > box[2] or box[1] > box[3]:
        raise DataError(f"{path}: a {noun} has a box that ends before it begins: {said}", fault="F28")
    return NOUNS.index(noun), box


COLUMNS = 6  # label, score, x1, y1, x2, y2
Table = npt.NDArray[np.float64]


def table_of(boxes: Sequence[Boxes]) -> tuple[npt.NDArray[np.int64], Table]:
    """How many boxes each frame has, and (boxes, 6) label, score, x1, y1, x2, y2."""
    counts = np.array([len(one) for one in boxes], np.int64)
    rows = [np.column_stack([one.label, one.sure, one.box]) for one in boxes if len(one)]
    return counts, np.concatenate(rows) if rows else np.zeros((0, COLUMNS))


def boxes_of(counts: npt.NDArray[np.int64], table: Table) -> list[Boxes]:
    """What `table_of` was given."""
    edges = np.concatenate([[0], np.cumsum(counts)])
    return [
        Boxes(table[lo:hi, 2:], table[lo:hi, 0].astype(np.int64), table[lo:hi, 1])
        for lo, hi in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def write_boxes(path: Path, found: Mapping[str, Boxes], known: Sequence[str]) -> None:
    """Write what was found in frames.

    Args:
        known: classes of the data set that the detector can find.
    """
    counts, table = table_of(list(found.values()))
    columns: dict[str, Any] = {"frames": np.array(list(found), np.str_), "counts": counts, "boxes": table}
    packed = io.BytesIO()
    np.savez(packed, **columns, known=np.array(known, np.str_))
    write_bytes(path, [packed.getvalue()])


def read_boxes(path: Path) -> tuple[dict[str, Boxes], tuple[str, ...]]:
    """What was found in each frame, and the classes that the detector can find.

    Raises:
        DataError: if the file is damaged or something else.
    """
    held = read_npz(path)
    try:
        frames, counts, table, known = (held[name] for name in ("frames", "counts", "boxes", "known"))
        fits = (
            (frames.dtype.kind, known.dtype.kind, counts.dtype.kind) == ("U", "U", "i")
            and frames.ndim == known.ndim == 1
            and counts.shape == frames.shape
            and table.dtype == np.float64
            and table.shape == (counts.sum(), COLUMNS)
            and (counts >= 0).all()
        )
        if not fits:
            raise KeyError
        return dict(zip(frames.tolist(), boxes_of(counts, table), strict=True)), tuple(known.tolist())
    except (KeyError, BadValue):
        raise DataError(
            f"{path}: no npz of frames and their boxes; delete it, and the cell is done again", fault="F101"
        ) from None
