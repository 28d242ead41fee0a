"""Files of object boxes in frames: true boxes as JSON or ImageNet-Vid's XML, detections as npz."""

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
    """Write true boxes as JSON, with whole numbers as integers."""
    plain = {frame: boxes_to_lists(frame_boxes) for frame, frame_boxes in boxes.items()}
    write_text(path, [json.dumps({"classes": list(classes), "boxes": plain}, indent=0), "\n"])


def boxes_to_lists(boxes: Boxes) -> list[list[float]]:
    """Convert boxes to rows of [class, x1, y1, x2, y2] for JSON."""
    rows = np.column_stack([boxes.label, boxes.box])
    return [[int(value) if value == int(value) else value for value in row] for row in rows.tolist()]


def read_true_boxes(path: str | Path) -> tuple[tuple[str, ...], dict[str, Boxes]]:
    """Read the classes and the true boxes of each frame.

    Raises:
        DataError: if the file holds something else.
    """
    content = read_json(path)
    classes, boxes = content.get("classes"), content.get("boxes")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise DataError(f"{path}: 'classes' has {describe(classes)}, not a list of names", fault="F28")
    if not isinstance(boxes, dict):
        raise DataError(f"{path}: 'boxes' has {describe(boxes)}, not boxes by frame", fault="F28")
    return tuple(classes), {frame: parse_boxes(path, frame, rows, len(classes)) for frame, rows in boxes.items()}


def parse_boxes(path: str | Path, frame: str, rows: Any, classes: int) -> Boxes:
    """Convert the JSON rows of one frame to boxes.

    Raises:
        DataError: if they are not boxes of these classes.
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

# WordNet ids of the thirty classes, in the order of their numbers.
NOUNS = (
    *("n02691156", "n02419796", "n02131653", "n02834778", "n01503061", "n02924116", "n02958343", "n02402425"),
    *("n02084071", "n02121808", "n02503517", "n02118333", "n02510455", "n02342885", "n02374451", "n02129165"),
    *("n01674464", "n02484322", "n03790512", "n02324045", "n02509815", "n02411705", "n01726692", "n02355227"),
    *("n02129604", "n04468005", "n01662784", "n04530566", "n02062744", "n02391049"),
)
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def read_vid_boxes(path: Path) -> Boxes:
    """Read the true boxes of one frame of ImageNet-Vid.

    Raises:
        DataError: if the file is not an annotation of ImageNet-Vid.
    """
    text = read_text(path, max_bytes=MAX_BYTES)
    if "<!" in text:  # document types define entities, which annotations do not need
        raise DataError(f"{path}: has a document type or comments, which annotations of frames do not", fault="F28")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError(f"{path}: not XML: {error}", fault="F28") from None
    objects = [_parse_object(path, element) for element in root.iter("object")]
    try:
        return Boxes(np.array([box for _, box in objects]), np.array([label for label, _ in objects], np.int64))
    except BadValue as error:
        raise DataError(f"{path}: {error}", fault=error.fault) from None


def _parse_object(path: Path, element: ElementTree.Element) -> tuple[int, list[float]]:
    noun = (element.findtext("name") or "").strip()
    if noun not in NOUNS:
        raise DataError(f"{path}: {noun!r} is the noun of no class of ImageNet-Vid", fault="F28")
    sides = [(element.findtext(f"bndbox/{side}") or "").strip() for side in _SIDES]
    try:
        box = [float(side) for side in sides]
    except ValueError:
        raise DataError(f"{path}: a {noun} has the box {sides}, not {', '.join(_SIDES)}", fault="F28") from None
    if box[0] > box[2] or box[1] > box[3]:
        raise DataError(f"{path}: a {noun} has a box that ends before it begins: {sides}", fault="F28")
    return NOUNS.index(noun), box


COLUMNS = 6  # label, score, x1, y1, x2, y2
Table = npt.NDArray[np.float64]


def boxes_to_table(boxes: Sequence[Boxes]) -> tuple[npt.NDArray[np.int64], Table]:
    """Return the number of boxes per frame, and a table of label, score, x1, y1, x2, y2."""
    counts = np.array([len(frame_boxes) for frame_boxes in boxes], np.int64)
    rows = [
        np.column_stack([frame_boxes.label, frame_boxes.sure, frame_boxes.box])
        for frame_boxes in boxes
        if len(frame_boxes)
    ]
    return counts, np.concatenate(rows) if rows else np.zeros((0, COLUMNS))


def table_to_boxes(counts: npt.NDArray[np.int64], table: Table) -> list[Boxes]:
    """Convert a table back to boxes; the inverse of `boxes_to_table`."""
    edges = np.concatenate([[0], np.cumsum(counts)])
    return [
        Boxes(table[lo:hi, 2:], table[lo:hi, 0].astype(np.int64), table[lo:hi, 1])
        for lo, hi in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def write_boxes(path: Path, boxes: Mapping[str, Boxes], known: Sequence[str]) -> None:
    """Write the detected boxes of frames as npz.

    Args:
        known: classes of the dataset that the detector knows.
    """
    counts, table = boxes_to_table(list(boxes.values()))
    columns: dict[str, Any] = {"frames": np.array(list(boxes), np.str_), "counts": counts, "boxes": table}
    buffer = io.BytesIO()
    np.savez(buffer, **columns, known=np.array(known, np.str_))
    write_bytes(path, [buffer.getvalue()])


def read_boxes(path: Path) -> tuple[dict[str, Boxes], tuple[str, ...]]:
    """Read the detected boxes of each frame, and the classes that the detector knows.

    Raises:
        DataError: if the file is damaged or something else.
    """
    arrays = read_npz(path)
    try:
        frames, counts, table, known = (arrays[name] for name in ("frames", "counts", "boxes", "known"))
        valid = (
            (frames.dtype.kind, known.dtype.kind, counts.dtype.kind) == ("U", "U", "i")
            and frames.ndim == known.ndim == 1
            and counts.shape == frames.shape
            and table.dtype == np.float64
            and table.shape == (counts.sum(), COLUMNS)
            and (counts >= 0).all()
        )
        if not valid:
            raise KeyError
        return dict(zip(frames.tolist(), table_to_boxes(counts, table), strict=True)), tuple(known.tolist())
    except (KeyError, BadValue):
        raise DataError(
            f"{path}: not an npz of frames and their boxes; delete it to compute the cell again", fault="F101"
        ) from None
