"""The head of a card: plain values as YAML, every text quoted, so that none is read as anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any


def front_matter(values: Mapping[str, Any]) -> str:
    """Values between two lines of dashes.

    >>> print(front_matter({"license": "mit", "tags": ["video", "no"], "size": 3}))
    ---
    license: "mit"
    tags:
    - "video"
    - "no"
    size: 3
    ---
    """
    return "\n".join(["---", *_lines(values), "---"])


def _lines(values: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{key}:", *(f"  {line}" for line in _lines(value))]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            lines += [f"{key}:", *(line for item in value for line in _item(item))]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return lines


def _item(item: Any) -> list[str]:
    if not isinstance(item, Mapping):
        return [f"- {_scalar(item)}"]
    first, *others = _lines(item)
    return [f"- {first}", *(f"  {line}" for line in others)]


def _scalar(value: str | float | bool | None) -> str:
    if isinstance(value, str):
        return f'"{"".join(map(_letter, value))}"'
    # YAML takes 1e-05 for a text: a number has a point.
    return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))


def _letter(letter: str) -> str:
    """Escape one character for double quotes; JSON's surrogate pairs would be read as two characters."""
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
