"""SVG drawings are well-formed XML, with all text escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.reporting.charts.drawing import Drawing, Scale, cut, stack, ticks

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=20)
SVG = "{http://www.w3.org/2000/svg}"


@given(WORDS, WORDS)
def test_text_is_escaped(words: str, hint: str) -> None:
    drawing = Drawing(10, 10, words)
    drawing.text(1, 1, words, hint=hint)
    drawing.open_link("#a", hint)
    drawing.rect(0, 0, 1, 1, "x", hint or "h")
    drawing.close_link()
    tree = ElementTree.fromstring(drawing.svg())
    assert tree.get("aria-label") == words
    assert tree.get("role") == "group"
    (text,) = tree.findall(f"{SVG}text")
    assert "".join(text.itertext()).endswith(words)
    (link,) = tree.findall(f"{SVG}a")
    assert link.get("aria-label") == hint


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(2, 10))
def test_ticks_are_sorted_and_within_the_range(low: float, span: float, about: int) -> None:
    values = ticks(low, low + span, about)
    assert values == sorted(values)
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in values)
    assert len(values) <= 3 * about


def test_empty_ranges_and_shortened_text() -> None:
    assert ticks(1, 1) == [1]
    assert Scale(2, 2, 0, 10)(2) == 0
    assert cut("abcdef", 4) == "abc…"


@pytest.mark.parametrize("mark", range(5))
def test_every_mark_is_one_element(mark: int) -> None:
    drawing = Drawing(10, 10, "")
    drawing.dot(5, 5, "m", mark, "hint")
    assert len(ElementTree.fromstring(drawing.svg())) == 1


@given(st.floats(0, 500), st.floats(0, 500), st.floats(0, 60), st.floats(0, 60), st.sampled_from("/\\-"))
def test_strokes_stay_inside_their_box(x: float, y: float, width: float, height: float, stroke: str) -> None:
    drawing = Drawing(600, 600, "")
    drawing.hatch(x, y, width, height, stroke)
    for shape in drawing.shapes:
        assert shape.apart
        assert len(shape.points) % 2 == 0
        for a, b in shape.points:
            assert x - 1e-6 <= a <= x + width + 1e-6
            assert y - 1e-6 <= b <= y + height + 1e-6


def test_strokes_of_boxes_that_touch_go_on() -> None:
    whole, parts = Drawing(100, 100, ""), Drawing(100, 100, "")
    whole.hatch(10, 10, 30, 50, "-")
    for top in (10, 33):
        parts.hatch(10, top, 30, 23 if top == 10 else 27, "-")
    ends, of_whole = ([end for shape in one.shapes for end in shape.points] for one in (parts, whole))
    assert ends == of_whole


def test_stacked_drawings_keep_their_shapes() -> None:
    one, other = Drawing(10, 5, "a"), Drawing(20, 5, "b")
    one.line(0, 0, 10, 5, "grid")
    other.path([(0, 0), (4, 4)], "line run0")
    other.dot(3, 4, "mark run0")
    other.text(1, 2, "words")
    both = stack("both", one, other, gap=2)
    assert (both.width, both.height) == (20, 12)
    line, path, dot, text = both.shapes
    assert line.points == ((0, 0), (10, 5))
    assert path.points == ((0, 7), (4, 11))
    assert (dot.attributes["cx"], dot.attributes["cy"]) == (3, 11)
    assert (text.attributes["x"], text.attributes["y"]) == (1, 9)
    assert len(ElementTree.fromstring(both.svg())) == 4
