"""Drawings as files: the same bytes every time, every shape and letter in each format."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest

from jostle.errors import BadValue, MissingExtra
from jostle.reporting.charts.drawing import Drawing
from jostle.reporting.charts.looks import RULES, look_of, style_sheet
from jostle.reporting.charts.save import MARGIN, save_as, save_drawing

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def drawing() -> Drawing:
    """Return a drawing with every kind of shape, a link and letters that other programs might interpret."""
    made = Drawing(200, 100, "all <shapes>")
    made.open_link("#a", "there")
    made.rect(10, 10, 60, 30, "square h7", r=3)
    made.close_link()
    made.text(40, 30, "$x_1$ & <b>", "on on-h7", "middle")
    made.text(190, 60, "turned", "pale small strong", "end", turn=-90)
    made.line(80, 20, 180, 20, "reach clean")
    made.path([(80, 40), (120, 30), (180, 45)], "line run1")
    made.path([(80, 60), (120, 50), (180, 65)], "band run2", closed=True)
    made.hatch(20, 50, 30, 40, "/\\")
    made.image(60, 60, 12, 8, np.full((4, 6, 3), (10, 20, 30), np.uint8))
    for mark in range(4):
        made.dot(90 + 20 * mark, 80, f"mark{' open' * (mark % 2)} run{mark}", mark, "hint")
    return made


def test_files_are_reproducible(drawing: Drawing, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for folder in ("a", "b"):
        paths = save_drawing(drawing, tmp_path / folder, "all")
        assert [path.name for path in paths] == ["all.png", "all.pdf", "all.svg"]
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_picture_has_the_colours_of_the_light_ground(drawing: Drawing, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (path,) = save_drawing(drawing, tmp_path, "all", ["png"])
    picture = cv2.imread(str(path))[:, :, ::-1]
    scale = picture.shape[1] / (drawing.width + 2 * MARGIN)
    assert picture.shape[0] / (drawing.height + 2 * MARGIN) == pytest.approx(scale, rel=0.01)

    def at(x: float, y: float) -> str:
        return "#" + "".join(f"{value:02x}" for value in picture[int((y + MARGIN) * scale), int((x + MARGIN) * scale)])

    assert at(14, 14) == "#7a2629"  # the deepest loss but one
    assert at(90, 80) == "#0072b2"
    assert at(66, 64) == "#0a141e"  # the image
    assert at(2, 2) == at(110, 80) == "#ffffff"  # the second mark is open


def test_vectors_keep_letters_and_need_no_style_sheet(drawing: Drawing, tmp_path: Path) -> None:
    (path,) = save_drawing(drawing, tmp_path, "all", ["svg"])
    tree = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert [one.text for one in tree.iter(f"{SVG}text")] == ["$x_1$ & <b>", "turned"]
    assert not [one for one in tree.iter() if "class" in one.attrib or one.tag == f"{SVG}a"]
    assert [one.get("stroke-dasharray") for one in tree.iter(f"{SVG}line")] == ["4 3"]
    assert "--" not in path.read_text(encoding="utf-8")


def test_other_formats_and_a_missing_extra_are_named(
    drawing: Drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadValue, match="png, pdf, svg, not 'eps'"):
        save_drawing(drawing, tmp_path, "all", ["eps"])
    assert save_as(drawing, tmp_path / "one.svg") == tmp_path / "one.svg"
    with pytest.raises(BadValue, match=r"written as \.png, \.pdf, \.svg"):
        save_as(drawing, tmp_path / "one.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert save_drawing(drawing, tmp_path, "all", ["svg"])
    with pytest.raises(MissingExtra, match="report"):
        save_drawing(drawing, tmp_path, "all", ["pdf"])


def test_every_rule_is_in_the_style_sheet_and_can_be_resolved(drawing: Drawing) -> None:
    text = style_sheet()
    assert [re.fullmatch(r"svg (\S+) \{ .* \}", line)[1] for line in text.splitlines()] == [*RULES]  # type: ignore[index]
    assert all("--" not in value for shape in drawing.shapes for value in look_of(shape).values())
