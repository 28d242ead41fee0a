"""Detections of other programs: the same boxes from COCO results, challenge text files and npz files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle.api
from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, DataError
from jostle.io.formats.boxes import Detections, read_detections, write_boxes, write_true_boxes
from jostle.metrics.pm_k_detection import pm_k_detection

FRAMES = ("val/a/000005.JPEG", "val/a/000006.JPEG", "val/b/000002.JPEG")
SETS = {FRAMES[0]: [FRAMES[1]], FRAMES[2]: []}
CLASSES = ("cattle", "dog", "whale")
TRUTH = {
    FRAMES[0]: Boxes([[0, 0, 10, 10], [20, 0, 30, 10]], [0, 1]),
    FRAMES[1]: Boxes([[0, 0, 10, 10]], [0]),
    FRAMES[2]: Boxes([[5, 5, 15, 25], [0, 0, 4, 4]], [1, 2]),
}
DETECTIONS = {
    FRAMES[0]: Boxes([[0, 0, 10, 9], [20, 0, 30, 10]], [0, 1], [0.9, 0.7]),
    FRAMES[1]: Boxes([], [], []),
    FRAMES[2]: Boxes([[5, 5, 15, 24]], [1], [0.6]),
}
# COCO ids have gaps, its names differ, and its boxes have a width and a height.
COCO = {
    "images": [{"id": 7 + i, "file_name": frame} for i, frame in enumerate(FRAMES)],
    "categories": [{"id": 18, "name": "dog"}, {"id": 21, "name": "cow"}, {"id": 1, "name": "person"}],
}
RESULTS: list[Any] = [
    {"image_id": 7, "category_id": 21, "bbox": [0, 0, 10, 9], "score": 0.9},
    {"image_id": 9, "category_id": 18, "bbox": [5, 5, 10, 19], "score": 0.6},
    {"image_id": 7, "category_id": 18, "bbox": [20, 0, 10, 10], "score": 0.7},
    {"image_id": 8, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.99},
]
LIST = "a/000005 11\na/000006 12\nb/000002 13\n"
TEXT = "11 1 0.9 0 0 10 9\n\n13 2 0.6 5 5 15 24\n11 2 0.7 20 0 30 10\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sets.json").write_text(json.dumps(SETS))
    (tmp_path / "coco.json").write_text(json.dumps(COCO))
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    (tmp_path / "list.txt").write_text(LIST)
    (tmp_path / "found.txt").write_text(TEXT)
    write_true_boxes(tmp_path / "boxes.json", CLASSES, TRUTH)
    write_boxes(tmp_path / "found.npz", DETECTIONS, CLASSES)
    return tmp_path


def rows(detections: Detections, frame: str) -> list[list[float]]:
    boxes = detections.boxes[frame]
    return np.column_stack([boxes.label, boxes.sure, boxes.box]).tolist()


def test_formats_are_recognised_by_content(folder: Path) -> None:
    coco = read_detections(folder / "results.json", folder / "coco.json")
    assert coco.classes == ("person", "dog", "cow")
    assert rows(coco, FRAMES[0]) == [[2, 0.9, 0, 0, 10, 9], [1, 0.7, 20, 0, 30, 10]]
    text = read_detections(folder / "found.txt", folder / "list.txt")
    assert text.classes is None
    assert rows(text, "a/000005") == [[0, 0.9, 0, 0, 10, 9], [1, 0.7, 20, 0, 30, 10]]
    assert len(text.boxes["a/000006"]) == 0
    assert read_detections(folder / "found.npz").known == CLASSES
    (folder / "list.txt").write_text("a/000005\na/000006\n")  # frames are numbered from 1
    (folder / "found.txt").write_text("2 3 0.5 1 2 3 4\n")
    assert rows(read_detections(folder / "found.txt", folder / "list.txt"), "a/000006") == [[2, 0.5, 1, 2, 3, 4]]


def test_scores_equal_those_of_the_metric(folder: Path) -> None:
    sets, boxes = folder / "sets.json", folder / "boxes.json"
    text = jostle.api.pm_k_boxes(folder / "found.txt", sets, boxes, frames=folder / "list.txt")
    expected = pm_k_detection(DETECTIONS, TRUTH, SETS, 10)
    assert (text.detection.mean_ap, text.detection.pm_k) == (expected.mean_ap, expected.pm_k)
    assert text.detection.pm_k_interval is not None
    assert text.localisation.ignore_class
    assert text == jostle.api.pm_k_boxes(folder / "found.npz", sets, boxes)
    # COCO has no whales, so they are not scored; its persons match no class.
    coco = jostle.api.pm_k_boxes(folder / "results.json", sets, boxes, frames=folder / "coco.json")
    assert (coco.classes, coco.of_classes) == (2, 3)
    assert coco.detection.mean_ap == 1
    assert coco.detection.pm_k == 0.5
    assert coco.to_dict()["detection"]["per_class"] == {"0": [1, 0], "1": [1, 1]}


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("results.json", [{**RESULTS[0], "image_id": 1}], "entry 0: image_id 1 is no image of"),
        ("results.json", [{**RESULTS[0], "category_id": 5}], "category_id 5 is no category of"),
        ("results.json", [{**RESULTS[0], "bbox": [0, 0, 1]}], r"entry 0: .* is not an image_id"),
        ("results.json", [{**RESULTS[0], "score": "high"}], r"entry 0: .* is not an image_id"),
        ("results.json", [{**RESULTS[0], "bbox": [0, 0, -1, 5]}], "ends before it begins"),
        ("results.json", {"results": []}, r"a list \[...\] is needed"),
        ("coco.json", {"images": 3}, "'images' has"),
        ("coco.json", {**COCO, "images": COCO["images"] * 2}, r"images\[3\]: the id 7 is that of another"),
        ("coco.json", {**COCO, "categories": [{"id": "1", "name": "cow"}]}, r"categories\[0\] has no whole number"),
    ],
)
def test_errors_in_coco_files_are_reported(file: str, text: Any, message: str, folder: Path) -> None:
    (folder / file).write_text(json.dumps(text))
    with pytest.raises(DataError, match=message):
        read_detections(folder / "results.json", folder / "coco.json")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("found.txt", "11 1 0.9 0 0 10\n", "line 1: .* is not frame class confidence"),
        ("found.txt", "11 dog 0.9 0 0 10 9\n", "line 1: .* is not frame class confidence"),
        ("found.txt", "\n99 1 0.9 0 0 10 9\n", "line 2: frame 99 is not in"),
        ("found.txt", "11 0 0.9 0 0 10 9\n", "classes are counted from 1"),
        ("found.txt", f"11 {'9' * 30} 0.9 0 0 10 9\n", "class 99999999999999999999; classes are counted from 1"),
        ("found.txt", "11 1 nan 0 0 10 9\n", "must be finite"),
        ("list.txt", "a/000005 1\na/000006 1\n", "line 2: 1 is a/000005 already"),
        ("list.txt", "a/000005 one\n", "line 1: .* is not <video>/<frame> and a number"),
    ],
)
def test_errors_in_text_files_are_reported(file: str, text: str, message: str, folder: Path) -> None:
    (folder / file).write_text(text)
    with pytest.raises(DataError, match=message):
        read_detections(folder / "found.txt", folder / "list.txt")


def test_a_list_of_frames_is_required_where_needed(folder: Path) -> None:
    with pytest.raises(BadValue, match="COCO's annotation file"):
        read_detections(folder / "results.json")
    with pytest.raises(BadValue, match="the list of frames"):
        read_detections(folder / "found.txt")
    with pytest.raises(BadValue, match="names its frames itself"):
        read_detections(folder / "found.npz", folder / "list.txt")
    (folder / "list.txt").write_text("a/000005 11\nb/000002 13\n")
    with pytest.raises(DataError, match=r"1 of 3 frames have no detections, the first: val/a/000006\.JPEG"):
        jostle.api.pm_k_boxes(
            folder / "found.txt", folder / "sets.json", folder / "boxes.json", frames=folder / "list.txt"
        )
    (folder / "found.txt").write_text("11 4 0.9 0 0 10 9\n")
    with pytest.raises(DataError, match=r"has boxes of class 4, and .* 3 classes"):
        jostle.api.pm_k_boxes(
            folder / "found.txt", folder / "sets.json", folder / "boxes.json", frames=folder / "list.txt"
        )
