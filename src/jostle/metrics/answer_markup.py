"""Text of a language model without what surrounds its answer: thinking, tags, LaTeX, Markdown, JSON."""

from __future__ import annotations

import ast
import html
import json
import re
import unicodedata
from typing import Any

_THINKING = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reason|rationale|analysis|reflection|scratchpad|cot)"
_BLOCK = re.compile(rf"[<\[◁]({_THINKING})\b[^>\]▷]*[>\]▷].*?[<\[◁]/\1\s*[>\]▷]", re.I | re.S)
_BLOCK_BEGINS = re.compile(rf"[<\[◁]{_THINKING}\s*[>\]▷]", re.I)
_BLOCK_ENDS = re.compile(rf"[<\[◁]/{_THINKING}\s*[>\]▷]", re.I)
_TAGS = r"answer|final[_ ]?answer|final|ans|choice|option|response|output|solution|result|prediction"
_TAGGED = re.compile(rf"<({_TAGS})\b[^>]*>(?P<inside>.*?)(?:</\1\s*>|$)", re.I | re.S)
_TAGGED_LAST = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1\s*>\s*$", re.I | re.S)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{(?P<inside>(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}?")
_BOX_TOKENS = re.compile(r"<\|begin_of_box\|>(?P<inside>.*?)(?:<\|end_of_box\|>|$)", re.S)
_END_OF_TURN = re.compile(r"<\|(?:im_end|eot_id|endoftext|end|return|eom_id)\|>|</s>|<end_of_turn>|<eos>", re.I)
_NEXT_TURN = re.compile(r"\n\s*(?:question|user|human|q)\s*\d*\s*[:.)]", re.I)
_FENCE = re.compile(r"```\w*\s*(?P<inside>.*?)(?:```|$)", re.S)
_STRUCK_OUT = re.compile(r"~~.*?~~|<(s|del|strike)>.*?</\1>", re.S)
_FONT = re.compile(r"\\(?:text|math|emph|underline|bf|rm)\w*\s*\{([^{}]*)\}")
_KEYS = frozenset(
    (
        "answer",
        "finalanswer",
        "correctanswer",
        "bestanswer",
        "answerletter",
        "ans",
        "choice",
        "finalchoice",
        "option",
        "correctoption",
        "bestoption",
        "selectedoption",
        "selection",
        "letter",
        "label",
        "prediction",
        "predictedanswer",
        "response",
        "result",
        "output",
    )
)
_VERDICT_KEYS = ("correct", "iscorrect", "valid", "isvalid")  # of a document that says its answer is none
_CIRCLED = "".join(chr(first + i) for first in (0x1F150, 0x1F170) for i in range(26))
_SIGNS = str.maketrans(
    "’‘ʼ“”„«»「」『』《》【】。、" + _CIRCLED, "'''" + 11 * '"' + "[].," + 2 * "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "\r"
)


def normalise(text: str) -> str:
    """Return text with plain letters, quotes and brackets, without marks that cannot be seen.

    >>> normalise("\\ufeff（Ｂ）"), normalise("Ⓒ"), normalise("【A】")
    ('(B)', 'C', '[A]')
    """
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_SIGNS)
    text = re.sub(r"!==?|=/=", "\u2260", text)
    return "".join(sign for sign in text if unicodedata.category(sign) != "Cf" and sign not in "\ufe0e\ufe0f").strip()


def without_thinking(text: str) -> str | None:
    """Return what stands outside of blocks of thinking, or None if the text ends while thinking.

    A block may lack its beginning, which some chat templates put into the prompt.

    >>> without_thinking("<think>A? No.</think> C"), without_thinking("A? No.</think> C"), without_thinking("<think>A")
    ('C', 'C', None)
    """
    if "<|channel|>" in text:
        _, final, text = text.rpartition("final<|message|>")
        if not final:
            return None
    if _BLOCK_ENDS.search(text):
        text = _BLOCK.sub("\n", text)
    if ends := list(_BLOCK_ENDS.finditer(text)):
        text = text[ends[-1].end() :]
    if begins := _BLOCK_BEGINS.search(text):
        before, inside = text[: begins.start()], text[begins.end() :]
        answer = _TAGGED_LAST.search(inside)
        text = before if before.strip() else answer[0] if answer else ""
    return text.strip() or None


def first_turn(text: str) -> tuple[str, str]:
    """Split a text where the model goes on to write the next question itself."""
    text = _STRUCK_OUT.sub(" ", text)  # before "</s>" is taken for the end of a turn
    text = _END_OF_TURN.split(text, maxsplit=1)[0] if not _END_OF_TURN.match(text) else text
    found = _NEXT_TURN.search(text)
    return (text[: found.start()], text[found.start() :]) if found else (text, "")


def marked_answers(text: str) -> tuple[list[str], str]:
    """Return what stands in answer tags or boxes, and the text after the last of them.

    >>> marked_answers("So <answer>B</answer>."), marked_answers("Hence $\\\\boxed{\\\\text{C}}$")
    ((['B'], '.'), (['\\\\text{C}'], '$'))
    """
    for pattern in (_TAGGED, _BOX_TOKENS, _BOXED):
        found = [match for match in pattern.finditer(text) if match["inside"].strip()]
        if found:
            return [match["inside"] for match in found], text[found[-1].end() :]
    return [], text


def json_answers(text: str) -> list[str] | None:
    """Return what a JSON document gives as its answer, or None if the text is no such document.

    >>> json_answers('{"reason": "A falls", "answer": "B"}'), json_answers('{"A": false, "B": true}'), json_answers("B")
    (['B'], ['B'], None)
    """
    fenced = _FENCE.search(text)
    body = (fenced["inside"] if fenced else text).strip()
    if not body.startswith(("{", "[")):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            return _answers_of(parse(body))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _answers_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return _answers_of(value[0]) if len(value) == 1 else []
    if not isinstance(value, dict):
        return []
    if value and all(isinstance(one, bool) for one in value.values()):
        true = [str(key) for key, one in value.items() if one]
        return true if len(true) == 1 else []
    keys = {re.sub(r"[\W_]", "", str(key)).lower(): one for key, one in value.items()}
    if any(str(keys.get(key, True)).lower() in ("false", "no") for key in _VERDICT_KEYS):
        return []
    answers = [one for key, one in value.items() if re.sub(r"[\W_]", "", str(key)).lower() in _KEYS]
    return [text for one in answers for text in _answers_of(one)]


def without_markup(text: str) -> str:
    """Return text without tags, LaTeX, Markdown and special tokens; what is struck through is left out.

    >>> without_markup("### **Answer:** B"), without_markup("~~A~~ B"), without_markup("<b>C</b>$")
    ('Answer: B', 'B', 'C')
    """
    text = re.sub(r"<br\s*/?>", "\n", text, flags=re.I)
    text = _STRUCK_OUT.sub(" ", text)
    text = re.sub(r"<\|[^|<>]*\|>|</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>", "", text)
    while (plainer := _FONT.sub(r"\1", text)) != text:
        text = plainer
    text = re.sub(r"\\[\[\]()]|[$*`]|\\(?=\W)", "", text)
    text = re.sub(r"(?<!\w)_+|_+(?!\w)", "", text)
    if re.search(r"^\s*(?:[-+]\s*)?(?:\[[xX]\]|[☑✅✔])\s*\S", text, re.M):  # a list with boxes to tick
        text = re.sub(r"^\s*(?:[-+]\s*)?(?:\[ ?\]|☐|❌|✗).*$", "", text, flags=re.M)
        text = re.sub(r"^\s*(?:[-+]\s*)?(?:\[[xX]\]|[☑✅✔])\s*", "", text, flags=re.M)
    text = re.sub(r"^[ \t]*(?:#+|>+|[-+•])[ \t]+", "", text, flags=re.M)
    return text.strip()
