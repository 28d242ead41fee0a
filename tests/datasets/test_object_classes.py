"""Labels of a detector are mapped to those of a data set, by name where both have names."""

from __future__ import annotations

import pytest

from jostle.core.types.boxes import Boxes
from jostle.datasets.class_matching import match_objects
from jostle.errors import BadValue
from jostle.metrics.class_projection import _TABLES

COCO = (
    *("airplane", "apple", "bear", "bicycle", "bird", "boat", "bus", "car", "cat", "cow", "dog", "elephant", "horse"),
    *("motorcycle", "person", "sheep", "train", "zebra"),
)


def test_coco_covers_sixteen_classes_of_imagenet_vid() -> None:
    vid = [name for name, _ in _TABLES["imagenet-vid"]]
    match = match_objects("net", COCO, vid)
    assert len(match.known) == 16
    assert {name: vid[number] for name, number in zip(COCO, match.numbers or (), strict=True) if number >= 0} == {
        name: {"boat": "watercraft", "cat": "domestic cat", "cow": "cattle"}.get(name, name)
        for name in COCO
        if name not in ("apple", "person")
    }


def test_labels_that_the_data_set_lacks_are_dropped() -> None:
    match = match_objects("net", ("person", "cat"), ("zebra", "cat"))
    boxes = match.apply(Boxes([[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]], [0, 1, 7], [0.9, 0.8, 0.7]))
    assert (boxes.label.tolist(), boxes.sure.tolist()) == ([1], [0.8])


def test_labels_without_names_are_matched_by_number() -> None:
    match = match_objects("net", (), ("zebra", "cat"))
    boxes = match.apply(Boxes([[0, 0, 1, 1], [2, 2, 3, 3]], [1, 2], [0.9, 0.8]))
    assert (match.how, match.known, boxes.label.tolist()) == ("by number", ("zebra", "cat"), [1])


def test_a_detector_of_other_things_is_refused() -> None:
    with pytest.raises(BadValue, match="net knows none of the data set's 1 classes, zebra; its own 1 are car"):
        match_objects("net", ("car",), ("zebra",))
