"""True boxes: round trip through a file, and errors that name the invalid entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jostle.core.types.boxes import Boxes
from jostle.errors import DataError
from jostle.io.formats.boxes import read_true_boxes, write_true_boxes


def test_boxes_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    boxes = {"v/1": Boxes([[0, 1, 5, 6.25]], [1]), "v/2": Boxes([], [])}
    write_true_boxes(path, ("cup", "dog"), boxes)
    classes, restored = read_true_boxes(path)
    assert classes == ("cup", "dog")
    assert list(restored) == ["v/1", "v/2"]
    assert (restored["v/1"].box.tolist(), restored["v/1"].label.tolist()) == ([[0, 1, 5, 6.25]], [1])
    assert len(restored["v/2"]) == 0
    assert json.loads(path.read_text())["boxes"]["v/1"] == [[1, 0, 1, 5, 6.25]]


@pytest.mark.parametrize(
    ("content", "message"),
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
def test_invalid_boxes_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        read_true_boxes(path)
