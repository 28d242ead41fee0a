"""Reading of generated text as one of the options of a question, by fixed rules.

Text that no rule reads is unreadable: it is counted as such, never guessed, and no model judges it. The rules are tried
in this order, and the first that applies decides:

1. The whole text is an option, its label (`B`, `(B)`, `B.`, `Option 2`), or both (`B. the dog`); a label with the words
   of another option is unreadable.
2. The text declares a label: "the answer is C", "Answer: B", "Best option: (C", "I choose B". Two different ones are
   unreadable.
3. The text begins with a label and a delimiter (`B) because ...`, `(B) ...`) or with an option and a delimiter ("Yes,
   he does."), or names a single label in brackets.
4. A refusal ("cannot be determined", "I'm sorry") is unreadable.
5. The text ends "... is C".
6. The text holds the words of exactly one option, and no negation.

An article is no label: "A person walks left" is not option A.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_EDGES = " \t\r\n\"'`*_.,;:!?()[]{}<>"
_LABEL = r"[\(\[\{\"'*]{0,3}(?P<label>[A-Za-z])(?![A-Za-z0-9'])[\)\]\}\"'*]{0,3}"
# The letter A (or I) before a word is an article (a pronoun), unless a reason follows.
_NOT_ARTICLE = r"(?=\s*(?:$|[.,;:!?\n\-–—]|because\b|since\b|as\b|due\b|based\b|which\b|\())"
_DECLARED = re.compile(
    r"(?:\banswer|\boption|\bchoice|\bselection)\s*(?:is|would be|should be|must be|:|=|-)\s*"
    r"(?:most likely\s+|probably\s+)?(?:the\s+)?(?:option\s+|letter\s+|choice\s+|:\s*)?" + _LABEL,
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"\b(?:i|i'd|i would|we)\s+(?:would\s+)?(?:choose|pick|select|go with|say)\s+(?:the\s+)?(?:option\s+|letter\s+)?"
    + _LABEL,
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?:option|choice)\s+" + _LABEL, re.IGNORECASE)
_SECOND = re.compile(r"\s*(?:and|or|,|/|&)\s*(?:option\s+)?[\(\[]?[A-Z](?![A-Za-z0-9'])")
_BEGINS = re.compile(r"\s*(?:[\(\[](?P<bracketed>[A-Za-z])[\)\]]|(?P<plain>[A-Za-z])\s*(?:[\).:]|-\s|\n)(?!\w\.))")
_BRACKETED = re.compile(r"[\(\[]([A-Z])[\)\]]")
_ENDS = re.compile(r"\b(?:is|be|was)\s+[\(\[]?(?P<label>[A-Z])[\)\]]?[.\s]*$")
_REFUSAL = re.compile(
    r"\b(?:can(?:'t|not| not)|could(?:n't| not)|unable to|impossible to|not possible to|not able to|difficult to)\b"
    r".{0,40}\b(?:determine|determined|answer|answered|tell|say|see|know|identify|assist|help|provide|view|watch|access)\b"
    r"|\b(?:i'm|i am|we are) (?:sorry|unable|not able|not sure)\b"
    r"|\b(?:do(?:es)? not|don't|doesn't) (?:know|provide|show|contain)\b"
    r"|\bas an ai\b|\bno (?:video|frames?|information)\b|\bnone of the\b|\bnot enough information\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|no|never|neither|nor|instead|rather|without|n't)\b|n't\b", re.IGNORECASE)


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
    >>> read_choice("A person waits.", options), read_choice("Cannot Be Determined", options), read_choice("", options)
    (None, None, None)
    """
    if text is None or not text.strip(_EDGES):
        return None
    text = text.strip().replace("\u2019", "'")
    for rule in (_whole, _declared, _beginning):
        decided, choice = rule(text, options, names)
        if decided:
            return choice
    if _REFUSAL.search(text):
        return None
    for rule in (_ending, _held):
        decided, choice = rule(text, options, names)
        if decided:
            return choice
    return None


_Decision = tuple[bool, int | None]  # whether the rule decides, and the option it gives
_UNDECIDED: _Decision = (False, None)


def _plain(text: str) -> str:
    return " ".join(text.strip(_EDGES).casefold().split())


def _letter(label: str, options: Sequence[str]) -> int | None:
    index = ord(label.upper()) - ord("A")
    return index if index < len(options) else None


def _labels(index: int, names: Sequence[str]) -> list[str]:
    letter = chr(ord("A") + index)
    return [*([names[index]] if names else [letter]), f"option {letter}", *([letter] if names else [])]


def _whole(text: str, options: Sequence[str], names: Sequence[str]) -> _Decision:
    whole = _plain(text)
    same = [i for i, option in enumerate(options) if _plain(option) == whole]
    if same:
        return True, same[0]
    for i in range(len(options)):
        for label in _labels(i, names):
            if whole == label.casefold():
                return True, i
            rest = re.fullmatch(re.escape(label) + r"\s*[\).:\-\]]*\s+(.*)", text.lstrip("([{*\"' "), re.I | re.S)
            if rest and (others := [j for j, one in enumerate(options) if _plain(rest[1]) == _plain(one)]):
                return True, i if i in others else None  # a label with the words of another option
    return _UNDECIDED


def _declared(text: str, options: Sequence[str], names: Sequence[str]) -> _Decision:
    if names and (chosen := _names_in(text, names)):
        return True, chosen.pop() if len(chosen) == 1 else None
    labels = set()
    for pattern in (_DECLARED, _CHOSEN, _NAMED):
        for match in pattern.finditer(text):
            after, label = text[match.end() :], match["label"]
            if label in "AaIi" and not re.match(_NOT_ARTICLE, after):
                continue
            if label.islower() and re.match(r"\s+[a-z]", after):
                continue
            if _SECOND.match(after):
                return True, None
            labels.add(label.upper())
        if labels:
            break
    if not labels:
        return _UNDECIDED
    return True, _letter(labels.pop(), options) if len(labels) == 1 else None


def _names_in(text: str, names: Sequence[str]) -> set[int]:
    """Return the options whose label, such as `Option 1`, the text holds."""
    return {i for i, name in enumerate(names) if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)}


def _beginning(text: str, options: Sequence[str], names: Sequence[str]) -> _Decision:
    match = _BEGINS.match(text)
    if match:
        return True, _letter(match["bracketed"] or match["plain"], options)
    for i, option in enumerate(options):
        if re.match(re.escape(option.strip(_EDGES)) + r"\s*[.,;:!\n]", text.lstrip(_EDGES), re.IGNORECASE):
            return True, i
    bracketed = set(_BRACKETED.findall(text))
    if len(bracketed) == 1:
        return True, _letter(bracketed.pop(), options)
    return (True, None) if bracketed else _UNDECIDED


def _ending(text: str, options: Sequence[str], names: Sequence[str]) -> _Decision:
    match = _ENDS.search(text)
    return (True, _letter(match["label"], options)) if match else _UNDECIDED


def _held(text: str, options: Sequence[str], names: Sequence[str]) -> _Decision:
    spans = {}
    for i, option in enumerate(options):
        words = re.escape(option.strip(_EDGES))
        match = words and re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE)
        if match:
            spans[i] = match.span()
    held = _outermost(spans.items())
    if len(held) != 1:
        return True, None
    start, end = spans[held[0]]
    around = text[:start] + " " + text[end:]
    return True, None if _NEGATION.search(around) else held[0]


def _outermost(spans: Iterable[tuple[int, tuple[int, int]]]) -> list[int]:
    """Return the options whose words do not lie within those of another option."""
    every = list(spans)
    return [
        i
        for i, (start, end) in every
        if not any(j != i and lo <= start and end <= hi and (lo, hi) != (start, end) for j, (lo, hi) in every)
    ]
