"""Parsing of generated text into one of the options, or None if no rule applies."""

from __future__ import annotations

import pytest

from jostle.metrics.answer_text import read_choice

OPTIONS = ("walks left", "walks right", "jumps", "sits")


@pytest.mark.fault("F151")
def test_letters_are_read_once() -> None:
    """`tests/public/test_answers.py` has several hundred texts; these two are not among them."""
    assert read_choice("Best option: C", OPTIONS) == 2
    assert read_choice("Answer: B\nAnswer: C", OPTIONS) is None


def test_longest_matching_option_wins() -> None:
    assert read_choice("He goes left to right again", ("left", "left to right")) == 1


def test_refusal_phrase_can_be_an_option() -> None:
    assert read_choice("Cannot be determined", ("a dog", "cannot be determined")) == 1


def test_option_labels_other_than_letters() -> None:
    names = ("Option 1", "Option 2")
    assert read_choice("Option 2.", ("He sits.", "He jumps."), names) == 1
    assert read_choice("Option 2: He sits.", ("He sits.", "He jumps."), names) is None
    assert read_choice("Option 1 or Option 2", ("He sits.", "He jumps."), names) is None
