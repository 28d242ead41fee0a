"""Matching of model classes, and of labels of object detectors, to the classes of a data set."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.core.types.boxes import Boxes
from jostle.datasets.class_matching import ClassMatch, match_classes, match_objects
from jostle.errors import BadValue
from jostle.metrics.class_projection import _TABLES

TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_names_are_matched_in_every_spelling() -> None:
    match = match_classes("net", ["Sit Down", "apply-eye-makeup", "Run"], ["ApplyEyeMakeup", "sit_down"])
    assert match.how == "by name"
    assert match.apply(TABLE, "net").tolist() == [[1, 0], [4, 3]]


def test_names_that_only_differ_in_spelling_are_matched_exactly() -> None:
    match = match_classes("net", ["a b", "ab", "c"], ["ab", "c"])
    assert match.columns == (1, 2)


@pytest.mark.parametrize("own", [(), ("LABEL_0", "LABEL_1", "LABEL_2"), ("0", "1", "2")])
def test_classes_without_names_are_matched_by_number(own: tuple[str, ...]) -> None:
    match = match_classes("net", own, ["x", "y", "z"])
    assert match.how == "by number"
    assert match.apply(TABLE, "net") is TABLE
    assert match_classes("net", ("a", "b", "c"), ("0", "1", "2"), numbered=True).how == "by number"


def test_classes_that_do_not_match_are_refused() -> None:
    with pytest.raises(BadValue, match="does not know 1 of the data set's 2 classes: fly"):
        match_classes("net", ["run", "walk"], ["run", "fly"])
    with pytest.raises(BadValue, match="has 2 classes without names, the data set 3"):
        match_classes("net", ["LABEL_0", "LABEL_1"], ["x", "y", "z"])
    with pytest.raises(BadValue, match="net returns 3 scores, and there are 4 classes"):
        match_classes("net", (), "wxyz").apply(TABLE, "net")
    with pytest.raises(BadValue, match="the labels go up to class 4"):
        ClassMatch("by number", None, least=5).apply(TABLE, "net")


def test_classes_of_imagenet_are_merged() -> None:
    scores = np.zeros((1, 1000), np.float32)
    scores[0, 340] = 1
    match = ClassMatch("by number", None, least=30, project="imagenet-vid")
    assert match.apply(scores, "net").argmax() == 29  # zebra
    assert match.apply(np.zeros((1, 30), np.float32), "net").shape == (1, 30)


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
