"""Matching of model classes to the classes of a data set."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.datasets.class_matching import ClassMatch, match_classes
from jostle.errors import BadValue

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
