"""SVG drawings are well-formed XML, with all text escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.reporting.charts.drawing import Drawing, Scale, cut, ticks

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
