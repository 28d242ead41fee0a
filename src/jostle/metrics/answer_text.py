"""Reading of the option that a model chose out of the text that it wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LETTER = re.compile(r"\(?([A-Z])[).:]?")


def read_choice(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that a text names; None if it names none, or more than one."""
    stripped = text.strip()
    match = _LETTER.fullmatch(stripped)
    if match and (index := ord(match[1]) - ord("A")) < len(options):
        return index
    same = [i for i, option in enumerate(options) if option.casefold() == stripped.casefold()]
    return same[0] if len(same) == 1 else None
