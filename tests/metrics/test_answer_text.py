"""Parsing of generated text into one of the options, or None if no rule applies."""

from __future__ import annotations

import pytest

from jostle.metrics.answer_text import read_choice

OPTIONS = ("walks left", "walks right", "jumps", "sits")

READABLE = {
    "Based on the video, the answer is C.": 2,  # the first letter anywhere would be B
    "Best option: C": 2,
    "Best option:(C": 2,
    "A man is walking. Answer: B": 1,  # the first letter is an article
    "B": 1,
    "b.": 1,
    "(B)": 1,
    "**B**": 1,
    "B) because he turns": 1,
    "Option B": 1,
    "The correct answer is option D.": 3,
    "The answer is A because he turns": 0,
    "I think the answer is probably D": 3,
    "The best answer is (A) walks left": 0,
    'Final answer: "B"': 1,
    "Answer is: C": 2,
    "It is C.": 2,
    "walks right": 1,
    "B. walks right": 1,
    "He walks right.": 1,
    "A person walks left": 0,  # by the words, not by the article "A"
    "A person sits.": 3,
}
UNREADABLE = (
    "",
    "   ",
    "(",
    "Cannot Be Determined",
    "I'm sorry, I can't assist with that.",
    "A person waits.",
    "The answer is a dog",
    "A and B",
    "The answer is B and C",
    "Answer: B\nAnswer: C",
    "E",
    "The answer is E",
    "2",  # ambiguous: counted from 0 or from 1
    "It does not jump, he sits",
    "he walks left or walks right",
    "A. walks right",  # the label of one option and the words of another
    "The video shows bottles of vitamin C and a plan",
)


@pytest.mark.parametrize(("text", "choice"), READABLE.items())
def test_readable_text_gives_an_option(text: str, choice: int) -> None:
    assert read_choice(text, OPTIONS) == choice


@pytest.mark.fault("F151")
@pytest.mark.parametrize("text", UNREADABLE)
def test_unreadable_text_gives_none(text: str) -> None:
    assert read_choice(text, OPTIONS) is None


def test_yes_and_no_are_read_by_their_first_word() -> None:
    assert read_choice("No, the video does not show him cooking.", ("yes", "no")) == 1
    assert read_choice("Yes.", ("yes", "no")) == 0
    assert read_choice("Not sure", ("yes", "no")) is None


def test_longest_matching_option_wins() -> None:
    assert read_choice("He goes left to right again", ("left", "left to right")) == 1


def test_refusal_phrase_can_be_an_option() -> None:
    assert read_choice("Cannot be determined", ("a dog", "cannot be determined")) == 1


def test_option_labels_other_than_letters() -> None:
    names = ("Option 1", "Option 2")
    assert read_choice("Option 2.", ("He sits.", "He jumps."), names) == 1
    assert read_choice("Option 2: He sits.", ("He sits.", "He jumps."), names) is None
    assert read_choice("Option 1 or Option 2", ("He sits.", "He jumps."), names) is None
