"""True boxes go into a file and come back; what is none is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jostle.core.types.boxes import Boxes
from jostle.errors import DataError
from jostle.io.formats.boxes import read_true_boxes, write_true_boxes


def test_boxes_come_back(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    boxes = {"v/1": Boxes([[0, 1, 5, 6.25]], [1]), "v/2": Boxes([], [])}
    write_true_boxes(path, ("cup", "dog"), boxes)
    classes, found = read_true_boxes(path)
    assert classes == ("cup", "dog")
    assert list(found) == ["v/1", "v/2"]
    assert (found["v/1"].box.tolist(), found["v/1"].label.tolist()) == ([[0, 1, 5, 6.25]], [1])
    assert len(found["v/2"]) == 0
    assert json.loads(path.read_text())["boxes"]["v/1"] == [[1, 0, 1, 5, 6.25]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"classes": "cup", "boxes": {}}, "'classes' has"),
        ({"classes": ["cup"], "boxes": []}, "'boxes' has"),
        ({"classes": ["cup"], "boxes": {"v/1": [[0, 1, 2, 3]]}}, "'v/1' has a list"),
        ({"classes": ["cup"], "boxes": {"v/1": [[1, 0, 0, 2, 3]]}}, "no number from 0 to 0"),
        ({"classes": ["cup"], "boxes": {"v/1": [[0, 5, 0, 2, 3]]}}, "ends before it begins"),
        ({"classes": ["cup"], "boxes": {"v/1": [[0, True, 0, 2, 3]]}}, "'v/1' has a list"),
        ({"classes": ["cup"], "boxes": {"v/1": [[0, 0, 0, 2, float("inf")]]}}, "Infinity|finite"),
        ({"classes": ["cup"], "boxes": {"v/1": [[0, 0, 0, 2, 10**400]]}}, "more than 300 digits"),
    ],
)
def test_what_is_no_boxes_is_refused(content: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=said):
        read_true_boxes(path)
