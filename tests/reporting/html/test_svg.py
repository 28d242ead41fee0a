"""Drawings are well-formed, and words in them are words."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.reporting.html.svg import Drawing, Scale, cut, ticks

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=20)
SVG = "{http://www.w3.org/2000/svg}"


@given(WORDS, WORDS)
def test_words_stay_words(words: str, hint: str) -> None:
    made = Drawing(10, 10, words)
    made.text(1, 1, words, hint=hint)
    made.open_link("#a", hint)
    made.rect(0, 0, 1, 1, "x", hint or "h")
    made.close_link()
    tree = ElementTree.fromstring(made.svg())
    assert tree.get("aria-label") == words
    assert tree.get("role") == "group"
    (text,) = tree.findall(f"{SVG}text")
    assert "".join(text.itertext()).endswith(words)
    (link,) = tree.findall(f"{SVG}a")
    assert link.get("aria-label") == hint


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(2, 10))
def test_ticks_lie_inside_and_are_round(low: float, span: float, about: int) -> None:
    made = ticks(low, low + span, about)
    assert made == sorted(made)
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in made)
    assert len(made) <= 3 * about


def test_small_things() -> None:
    assert ticks(1, 1) == [1]
    assert Scale(2, 2, 0, 10)(2) == 0
    assert cut("abcdef", 4) == "abc…"


@pytest.mark.parametrize("mark", range(5))
def test_marks_differ(mark: int) -> None:
    made = Drawing(10, 10, "")
    made.dot(5, 5, "m", mark, "hint")
    assert len(ElementTree.fromstring(made.svg())) == 1
