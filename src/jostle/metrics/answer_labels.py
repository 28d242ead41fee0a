"""Labels of options in running text, marked by signs that the rules on clauses can read.

Labels are replaced by single signs of the private use area, so that the rules on clauses need not know how a label is
written: an explicit one (`(B)`, `option B`) from U+E000, a bare letter from U+E100.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_EXPLICIT, _BARE, _MASKED = 0xE000, 0xE100, 0xF000
_CONTRADICTED = 63  # index of a label that stands with the words of another option: none can be taken from it
ANY = "[\ue000-\ue13f]"  # pattern of a sign

# A and I are words as well. Before one of these they are labels.
_AFTER_LABEL = (
    r"(?=\s*(?:$|[.,;:!?\n\-–—)\]}=>→|/&+✓✔✗✘✅❌×]|because\b|since\b|as\b|due\b|based\b|which\b|\("
    r"|[^\x00-\u024f\u2000-\u206f])"
    r"|\s+(?:is|isn't|was|are|were|would|could|might|may|seems?|looks|appears|and|or|nor|but|rather|instead|not|over"
    r"|matches|fits|describes|shows|says|cannot|can't|can be|should|must be|does|doesn't|has to|with \d"
    r"|\d{1,2}[.)]|it is"
    r"|o|y|ou|et|oder|und|ist|est|es|yes|no|n'est|[A-Z](?![A-Za-z0-9'])|[\ue000-\ue13f])(?![\w]))"
)
_LEFT = r"(?<![A-Za-z0-9'\u00c0-\u024f])(?<![A-Za-z]-)(?<![A-Za-z]\.)"
_RIGHT = r"(?![A-Za-z0-9'\u00c0-\u024f]|-[A-Za-z]|\.[A-Za-z])"
_NOUN_LABEL = re.compile(
    r"(?:(?<!\w)(?:answer choice|options?|choices?|letter|alternative|opci[oó]n|opção|opzione|lettre|lettera|letra"
    r"|buchstabe|вариант)\s+|选项\s*|選項\s*|選択肢\s*)[(\[{\"']*(?P<label>[A-Za-z])"
    + _RIGHT
    + r"(?P<rest>[)\]}\"']*)",
    re.IGNORECASE,
)
_BRACKETED = re.compile(
    r"(?<![\w])[(\[{\"']+\s*(?P<label>[A-Za-z])\s*[)\]}\"']+|(?<!\w)[(\[](?P<open>[A-Z])(?![\w'\])])"
)
_LOWER = re.compile(
    r"(?:(?:^|\n)\s*(?P<line>[b-z])(?=\s*[).:](?:\s|$))"
    r"|(?<=\b(?:is|be|on)\s)(?P<declared>[a-z])(?=\s*(?:[.,;!)]|$))|(?<=[:=]\s)(?P<given>[a-z])(?=\s*(?:[.,;!)]|$)))"
)
_UPPER = re.compile(_LEFT + r"(?P<label>[A-Z])" + _RIGHT)


def mark_labels(text: str, options: Sequence[str], names: Sequence[str] = ()) -> str:
    """Return a text with a sign for each label of an option; an option's own words behind its label are left out."""
    text, options = _mask_options(re.sub("[\ue000-\uf8ff]", "", text), options)
    for i, name in sorted(enumerate(names), key=lambda pair: -len(pair[1])):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", chr(_EXPLICIT + i), text, flags=re.IGNORECASE)

    def sign(letter: str, base: int) -> str:
        index = ord(letter.upper()) - ord("A")
        if index >= len(options):  # the words of an option may be a letter
            same = [i for i, one in enumerate(options) if one.strip(" .").casefold() == letter.casefold()]
            index = same[0] if same else index
        return chr(base + index)

    def noun(match: re.Match[str]) -> str:
        letter, after = match["label"], text_now[match.end() :]
        article = letter in "aAI" or letter.islower()
        if article and not match["rest"] and not re.match(_AFTER_LABEL, after):
            return match[0]
        content = re.match(r"let|buch", match[0], re.IGNORECASE)  # a letter may be what the video shows
        return sign(letter, _BARE if content else _EXPLICIT)

    def upper(match: re.Match[str]) -> str:
        letter, after = match["label"], text_now[match.end() :]
        words = options[ord(letter) - ord("A")] if ord(letter) - ord("A") < len(options) else ""
        own = words and re.match(r"\s*" + re.escape(words), after, re.IGNORECASE)
        if letter in "AI" and not own and not re.match(_AFTER_LABEL, after):
            return match[0]
        if letter == "I" and not re.match(r"\s*(?:$|[.):,\n])", after):
            return match[0]
        return sign(letter, _BARE)

    text_now = text
    text = text_now = _NOUN_LABEL.sub(noun, text_now)
    text = text_now = _BRACKETED.sub(lambda match: f" {sign(match['label'] or match['open'], _EXPLICIT)} ", text_now)
    text = text_now = _LOWER.sub(
        lambda match: match[0][:-1] + sign(match["line"] or match["declared"] or match["given"], _BARE), text_now
    )
    text = _UPPER.sub(upper, text_now)
    return _without_own_words(text.replace('"', " "), [one.replace('"', " ") for one in options])


def _mask_options(text: str, options: Sequence[str]) -> tuple[str, list[str]]:
    """Replace options that hold letters of their own, such as "(b)(a)(c)" or "John F. Kennedy", by signs."""
    masked = list(options)
    for i in sorted(range(len(options)), key=lambda i: -len(options[i])):
        if len(options[i]) > 3 and re.search(r"(?<![A-Za-z'])[A-Za-z](?![A-Za-z'])", options[i]):
            masked[i] = 2 * chr(_MASKED + i)
            text = re.sub(rf"(?<!\w){re.escape(options[i])}(?!\w)", masked[i], text, flags=re.IGNORECASE)
    return text, masked


def _without_own_words(text: str, options: Sequence[str]) -> str:
    """Leave out an option's words behind its label, also where they break off at the end; mark contradictions."""
    parts = re.split(f"({ANY})", text)
    for k in range(1, len(parts), 2):
        index, after = index_of(parts[k]), parts[k + 1]
        words = after.lstrip(" \t).:,;-–—(=\n")
        lead = after[: len(after) - len(words)]
        if index >= len(options) or not words:
            continue
        held = [
            i for i, one in enumerate(options) if one and re.match(re.escape(one) + r"(?!\w)", words, re.IGNORECASE)
        ]
        longest = max((len(options[i]) for i in held), default=0)
        best = [i for i in held if len(options[i]) == longest]
        own = options[index]
        if index in best:
            rest = words[longest:].lstrip(" )")
            listed = "\n" in lead or rest[:1] in ("", ".", ",", ";", ":", "!", "\n", "?", "-", "–")
            parts[k + 1] = (": " if listed else " ") + rest
        elif best and longest > 1:
            parts[k] = chr(_EXPLICIT + _CONTRADICTED)
        elif k == len(parts) - 2 and len(words) > 2 and own.casefold().startswith(words.casefold()):
            parts[k + 1] = ""  # cut off
    return "".join(parts)


def index_of(sign: str) -> int:
    """Return the index of the option that a sign stands for."""
    return ord(sign) - (_BARE if ord(sign) >= _BARE else _EXPLICIT)


def indices_in(text: str) -> set[int]:
    """Return the indices of the options whose signs are in a text."""
    return {index_of(sign) for sign in re.findall(ANY, text)}
