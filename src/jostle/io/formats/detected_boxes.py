"""Detected boxes of other programs: COCO's results, and the text format of ILSVRC's video challenge.

Neither names its frames: COCO refers to image ids of an annotation file, the text to lines of a list of frames. So each
is read with that second file, and a frame without detections has no boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, DataError
from jostle.io.files.text import describe, read_head, read_json, read_json_list, read_text
from jostle.io.formats.boxes import read_boxes

_ZIP = b"PK\x03\x04"
MAX_CLASSES = 10**6  # more is a mistake
MAX_DIGITS = 18  # of a number in a list, at most
_WORDS = 7  # frame, class, confidence, xmin, ymin, xmax, ymax
Row = tuple[int, float, list[float]]  # label, score, box


@dataclass(frozen=True)
class Detections:
    """Detected boxes read from a file.

    Attributes:
        boxes: by frame name.
        classes: names by label; "" for an unused label. None if labels are the dataset's own numbers.
        known: the dataset's classes that the detector knows; None if the file does not say.
    """

    boxes: Mapping[str, Boxes]
    classes: tuple[str, ...] | None = None
    known: tuple[str, ...] | None = None


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
