"""Reading of generated text as one of the options of a question, by fixed rules.

A text is read as a person would read it, or it is unreadable: it is counted as such, never guessed, and no model
judges it. The rules, in this order:

1. Thinking (`<think>...</think>` and its variants) is left out; a text that ends while thinking is unreadable. Where
   there is an answer tag, a box (`\\boxed{C}`) or a JSON document with an answer, that is read, and nothing else.
2. The whole text is a label (`B`, `(B)`, `B.`), an option, or both (`B. the dog`). A label comes before words: where
   options are letters themselves, `B` is option B. A label with the words of another option is unreadable.
3. Clauses claim a label: it stands alone, is declared ("the answer is C", "Antwort: C"), chosen ("I'd go with C"), or
   judged ("C is correct"). Labels that are denied ("not A", "A is wrong"), questions, conditions and what others say
   claim nothing. A retraction ("wait", "no, ...") withdraws what was claimed before it. Claims that differ are
   unreadable, unless a "final answer" is among them.
4. A refusal ("cannot be determined", "I'm sorry") is unreadable.
5. A single label is named, as `(B)` or `option B`, and nothing in the text speaks against it.
6. The text holds the words of exactly one option, and no negation.

An article is no label: "A person walks left" is not option A.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jostle.metrics.answer_claims import Reading, read_claims, takes_back
from jostle.metrics.answer_labels import mark_labels
from jostle.metrics.answer_markup import (
    first_turn,
    json_answers,
    marked_answers,
    normalise,
    without_markup,
    without_thinking,
)

_EDGES = " \t\r\n\"'`*_.,;:!()[]{}<>"
_REFUSAL = re.compile(
    r"\b(?:can(?:'t|not| not)|could(?:n't| not)|unable to|impossible to|not possible to|not able to|difficult to)\b"
    r".{0,40}\b(?:determine|determined|answer|answered|tell|say|see|know|identify|assist|help|provide|view|watch|access)\b"
    r"|\b(?:i'm|i am|we are) (?:sorry|unable|not able|not sure)\b"
    r"|\b(?:do(?:es)? not|don't|doesn't) (?:know|provide|show|contain)\b"
    r"|\bas an ai\b|\bno (?:video|frames?|information)\b|\bnone of the\b|\bnot enough information\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|neither|nor|instead|rather|without|unlike|except|wrong|incorrect|false|whether|wait)\b|n't\b",
    re.IGNORECASE,
)
_LONGEST = 4_000  # characters at the end of a text that are read; answers stand at the end of what is longer


def read_choice(text: str | None, options: Sequence[str], names: Sequence[str] = ()) -> int | None:
    """Return the index of the option that a generated text gives, or None if it is unreadable.

    Args:
        options: without letters.
        names: labels of the options where they are not letters, such as `Option 1`.

    >>> options = ("walks left", "walks right", "jumps", "sits")
    >>> read_choice("Based on the video, the answer is C.", options), read_choice("Best option: (C", options)
    (2, 2)
    >>> read_choice("A person walks left", options), read_choice("A man is walking. Answer: B", options)
    (0, 1)
    >>> read_choice("<think>A?</think> \\\\boxed{B}", options), read_choice("not (A)", options)
    (1, None)
    >>> read_choice("A person waits.", options), read_choice("Cannot Be Determined", options), read_choice("", options)
    (None, None, None)
    """
    if text is None:
        return None
    options = [without_markup(normalise(option)) or option for option in options]
    answer = without_thinking(normalise(text))
    if answer is None:
        return None
    turn, later = first_turn(answer[-_LONGEST:])
    choice = _answer(turn, options, names)
    return choice if choice is not None or not later else _answer(turn + later, options, names)


def _answer(text: str, options: Sequence[str], names: Sequence[str]) -> int | None:
    """Return the option that a text gives in a tag, a box, a JSON document or words."""
    marked, after = marked_answers(text)
    if marked:
        choice = _agreed(marked, options, names)
        later = _claimed(after, options, names)
        withdrawn = later.withdrawn or takes_back(after)
        return None if withdrawn or later.choice not in (None, choice) else choice
    listed = json_answers(text)
    return _words(text, options, names) if listed is None else _agreed(listed, options, names)


def _agreed(texts: Sequence[str], options: Sequence[str], names: Sequence[str]) -> int | None:
    parts = [part for text in texts for part in marked_answers(text)[0] or json_answers(text) or [text]]
    choices = {_words(part, options, names) for part in parts}
    return choices.pop() if len(choices) == 1 else None


def _claimed(text: str, options: Sequence[str], names: Sequence[str]) -> Reading:
    return read_claims(mark_labels(without_markup(text), options, names), len(options))


def _words(text: str, options: Sequence[str], names: Sequence[str]) -> int | None:
    text = without_markup(text)
    if not text.strip(_EDGES):
        return None
    decided, choice = _whole(text, options, names)
    if decided:
        return choice
    decided, choice = _beginning(text, options)
    if decided:
        return choice
    reading = _claimed(text, options, names)
    if reading.decided:
        return reading.choice
    held = _held(text, options)
    around = text
    if len(held) == 1:
        ((start, end),) = held.values()
        around = text[:start] + " " + text[end:]  # the words of an option may be a refusal
    if _REFUSAL.search(around):
        return None
    if reading.named is not None:
        return None if held and reading.named not in held else reading.named
    if len(held) != 1 or reading.withdrawn:
        return None
    return None if _NEGATION.search(around) or "?" in around else next(iter(held))


_Decision = tuple[bool, int | None]  # whether the rule decides, and the option it gives
_UNDECIDED: _Decision = (False, None)


def _plain(text: str) -> str:
    return " ".join(text.rstrip(_EDGES).lstrip(_EDGES.replace("!", "")).casefold().split())  # "!B" denies B


def _labels(index: int, names: Sequence[str]) -> list[str]:
    letter = chr(ord("A") + index)
    if not names:
        return [letter, f"option {letter}"]
    short = names[index].split()[-1]
    return [names[index], short, *([] if any(name.split()[-1] == letter for name in names) else [letter])]


def _whole(text: str, options: Sequence[str], names: Sequence[str]) -> _Decision:
    whole = _plain(text)
    labels = [[label.casefold() for label in _labels(i, names)] for i in range(len(options))]
    for i in range(len(options)):
        if whole in labels[i]:
            return True, i
    same = [i for i, option in enumerate(options) if _plain(option) == whole]
    if same:
        return True, same[0]
    for i in range(len(options)):
        for label in labels[i]:
            name = re.escape(label)
            rest = re.fullmatch(name + r"(?:\s*[\).:,\-–—\]]+\s*|\s+)(.*)", text.lstrip("([{*\"' "), re.I | re.S)
            words = rest[1] if rest else ""
            if rest is None and (behind := re.search(rf"[\(\[]\s*(?:option )?{name}\s*[\)\]][.\s]*$", text, re.I)):
                words = text[: behind.start()]
            if words and (others := [j for j, one in enumerate(options) if _plain(words) == _plain(one) != ""]):
                return True, i if i in others else None  # a label with the words of another option
    return _UNDECIDED


def _beginning(text: str, options: Sequence[str]) -> _Decision:
    """Read a text that begins with an option and goes on: "Yes, he does."; another option behind it is none."""
    begins = text.lstrip(_EDGES)
    for i, option in enumerate(options):
        words = option.strip(_EDGES)
        if len(words) < 2 or not (match := re.match(re.escape(words) + r"\s*[.,;:!\n]", begins, re.IGNORECASE)):
            continue
        short = {_plain(one) for one in options} == {"yes", "no"}
        # A "no" within a sentence is no answer; alone it is.
        before = r"(?:^|[.,;:!?\n-]|\bwait|\bor|\bactually)\s*" if short else r"(?<!\w)"
        behind = r"(?=\s*(?:[.,;!?]|$))" if short else r"(?!\w)"
        rest = begins[match.end() - 1 :]
        for j, other in enumerate(options):
            if j != i and re.search(before + re.escape(other.strip(_EDGES)) + behind, rest, re.IGNORECASE):
                return (True, None) if not short else _later(rest, other, j)
        return True, i
    return _UNDECIDED


def _later(rest: str, other: str, index: int) -> _Decision:
    """Read "No wait, yes." as what comes after the retraction."""
    taken_back = re.search(r"\b(?:wait|actually|correction|sorry)\b\W*" + re.escape(other), rest, re.IGNORECASE)
    return True, index if taken_back else None


def _held(text: str, options: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Return the options whose words the text holds, and where; a single letter is a label, and no words."""
    spans = {}
    for i, option in enumerate(options):
        words = option.strip(_EDGES)
        if re.fullmatch(r"[A-Za-z]?", words) and ord(words.upper() or "A") - ord("A") < len(options):
            continue
        match = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)
        if match:
            spans[i] = match.span()
    return {i: spans[i] for i in _outermost(spans.items())}


def _outermost(spans: Iterable[tuple[int, tuple[int, int]]]) -> list[int]:
    """Return the options whose words do not lie within those of another option."""
    every = list(spans)
    return [
        i
        for i, (start, end) in every
        if not any(j != i and lo <= start and end <= hi and (lo, hi) != (start, end) for j, (lo, hi) in every)
    ]
