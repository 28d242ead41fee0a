"""Files of object boxes in frames: true boxes as JSON or ImageNet-Vid's XML, detections as npz.

Detected boxes of other programs: COCO's results, and the text format of ILSVRC's video challenge.
Neither names its frames: COCO refers to image ids of an annotation file, the text to lines of a list of frames. So each
is read with that second file, and a frame without detections has no boxes.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from jostle.core.formatting import describe
from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, DataError
from jostle.io.files.arrays import read_npz
from jostle.io.files.atomic import write_bytes, write_text
from jostle.io.files.text import read_head, read_json, read_json_list, read_text

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
    """Read the classes and the true boxes of each frame; raises DataError if the file holds something else."""
    content = read_json(path)
    classes, boxes = content.get("classes"), content.get("boxes")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise DataError(f"{path}: 'classes' has {describe(classes)}, not a list of names", fault="F28")
    if not isinstance(boxes, dict):
        raise DataError(f"{path}: 'boxes' has {describe(boxes)}, not boxes by frame", fault="F28")
    return tuple(classes), {frame: parse_boxes(path, frame, rows, len(classes)) for frame, rows in boxes.items()}


def parse_boxes(path: str | Path, frame: str, rows: Any, classes: int) -> Boxes:
    """Convert the JSON rows of one frame to boxes; raises DataError if they are not boxes of these classes."""
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
    """Write the detected boxes of frames as npz, with the classes of the dataset that the detector knows."""
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


_ZIP = b"PK\x03\x04"
MAX_CLASSES = 10**6  # more is a mistake
MAX_DIGITS = 18  # of a number in a list, at most
_WORDS = 7  # frame, class, confidence, xmin, ymin, xmax, ymax
Row = tuple[int, float, list[float]]  # label, score, box


@dataclass(frozen=True)
class Detections:
    """Detected boxes read from a file."""

    boxes: Mapping[str, Boxes]  # by frame name
    # Names by label; "" for an unused label. None if labels are the dataset's own numbers
    classes: tuple[str, ...] | None = None
    known: tuple[str, ...] | None = None  # the dataset's classes that the detector knows; None if the file does not say


def read_detections(path: str | Path, frames: str | Path | None = None) -> Detections:
    """Read detected boxes from a run's npz, COCO's JSON or the video challenge's text, recognised by content.

    Args:
        frames: COCO's annotation file, or the list of frames that goes with the text.

    Raises:
        DataError: if the file is none of these, or the two files do not match.
        BadValue: if `frames` is needed and not given, or the other way round.
    """
    file = Path(path)
    head = read_head(file, 4096)
    if head.startswith(_ZIP):
        if frames is not None:
            raise BadValue(f"{file}: names its frames itself; leave out the file of frames")
        boxes, known = read_boxes(file)
        return Detections(boxes, known=known)
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[", b"{")) or head.startswith(b"\x1f\x8b")
    if frames is None:
        needed = "COCO's annotation file, with its images and categories" if is_json else "the list of frames"
        raise BadValue(f"{file}: does not name its frames; give {needed} as the file of frames")
    return read_coco_results(file, frames) if is_json else read_vid_results(file, frames)


def read_coco_results(path: str | Path, annotations: str | Path) -> Detections:
    """Read COCO's results, `[{"image_id", "category_id", "bbox": [x, y, width, height], "score"}]`.

    Args:
        annotations: a file with `images` and `categories`; other keys are ignored.
    """
    content = read_json(annotations)
    images = _read_names(annotations, content, "images", "file_name")
    categories = _read_names(annotations, content, "categories", "name")
    numbers = {number: i for i, number in enumerate(sorted(categories))}
    rows: dict[str, list[Row]] = {name: [] for name in images.values()}
    for i, row in enumerate(read_json_list(path)):
        where = f"{path}: entry {i}"
        image, category, box, score = _parse_entry(where, row)
        if image not in images:
            raise DataError(f"{where}: image_id {image} is no image of {annotations}", fault="F36")
        if category not in numbers:
            raise DataError(f"{where}: category_id {category} is no category of {annotations}", fault="F36")
        x, y, width, height = box
        rows[images[image]].append((numbers[category], score, [x, y, x + width, y + height]))
    return Detections(_build_boxes(path, rows), tuple(categories[number] for number in sorted(categories)))


def read_vid_results(path: str | Path, frames: str | Path) -> Detections:
    """Read lines of `frame class confidence xmin ymin xmax ymax`, with frames and classes from 1.

    Args:
        frames: the list, `<video>/<frame> <number>` a line; without numbers lines are counted from 1.
    """
    names = _read_frame_list(frames)
    rows: dict[str, list[Row]] = {name: [] for name in names.values()}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        where = f"{path}: line {number}"
        try:
            frame, label = int(words[0]), int(words[1])
            score, *box = (float(word) for word in words[2:])
        except (ValueError, IndexError):
            score, box = math.nan, []
        if len(words) != _WORDS or not box:
            raise DataError(f"{where}: {line[:80]!r} is not frame class confidence xmin ymin xmax ymax", fault="F28")
        if frame not in names:
            raise DataError(f"{where}: frame {frame} is not in {frames}", fault="F36")
        if not 1 <= label <= MAX_CLASSES:
            raise DataError(f"{where}: class {str(label)[:20]}; classes are counted from 1", fault="F28")
        rows[names[frame]].append((label - 1, score, box))
    return Detections(_build_boxes(path, rows))


def match_frame_names(boxes_by_name: Mapping[str, Boxes], frames: Iterable[str]) -> dict[str, Boxes]:
    """Rename boxes to the given frames; suffixes and the first folder may be missing in the file.

    >>> list(match_frame_names({"a/000001": Boxes([], [])}, ["val/a/000001.JPEG", "val/b/000001.JPEG"]))
    ['val/a/000001.JPEG']
    """
    plain = {str(PurePosixPath(name).with_suffix("")): boxes for name, boxes in boxes_by_name.items()}
    matched = {}
    for frame in frames:
        stem = str(PurePosixPath(frame).with_suffix(""))
        for known, name in ((boxes_by_name, frame), (plain, stem), (plain, stem.partition("/")[2])):
            if name in known:
                matched[frame] = known[name]
                break
    return matched


def _read_names(path: str | Path, content: dict[str, Any], what: str, name: str) -> dict[int, str]:
    rows = content.get(what)
    if not isinstance(rows, list):
        raise DataError(f"{path}: {what!r} has {describe(rows)}, not a list of them with id and {name}", fault="F28")
    names: dict[int, str] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or type(row.get("id")) is not int or not isinstance(row.get(name), str):
            raise DataError(f"{path}: {what}[{i}] has no whole number 'id' and text {name!r}", fault="F28")
        if row["id"] in names:
            raise DataError(f"{path}: {what}[{i}]: the id {row['id']} is that of another one already", fault="F33")
        names[row["id"]] = row[name]
    return names


def _parse_entry(where: str, row: Any) -> tuple[int, int, list[float], float]:
    if isinstance(row, dict):
        image, category, box, score = (row.get(key) for key in ("image_id", "category_id", "bbox", "score"))
        numbers = [*box, score] if isinstance(box, list) else []
        whole = type(image) is int and type(category) is int
        if whole and len(numbers) == 5 and all(type(value) in (int, float) for value in numbers):
            return image, category, numbers[:4], numbers[4]  # type: ignore[return-value]
    raise DataError(
        f"{where}: {describe(row)} is not an image_id, category_id, bbox [x, y, width, height] and score", fault="F28"
    )


def _read_frame_list(path: str | Path) -> dict[int, str]:
    frames: dict[int, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        *name, last = words
        if len(name) > 1 or (name and not (last.isdecimal() and len(last) <= MAX_DIGITS)):
            raise DataError(f"{path}: line {number}: {line[:80]!r} is not <video>/<frame> and a number", fault="F28")
        index = int(last) if name else number
        if index in frames:
            raise DataError(f"{path}: line {number}: {index} is {frames[index]} already", fault="F33")
        frames[index] = words[0]
    return frames


def _build_boxes(path: str | Path, rows: Mapping[str, list[Row]]) -> dict[str, Boxes]:
    boxes = {}
    for frame, frame_rows in rows.items():
        try:
            box = np.array([row[2] for row in frame_rows], np.float64).reshape(-1, 4)
            score = np.array([row[1] for row in frame_rows], np.float64)
            if (box[:, :2] > box[:, 2:]).any():
                raise DataError(f"{path}: {frame!r} has a box that ends before it begins", fault="F28")
            boxes[frame] = Boxes(box, np.array([row[0] for row in frame_rows], np.int64), score)
        except BadValue as error:
            raise DataError(f"{path}: {frame!r}: {error}", fault=error.fault) from None
    return boxes
