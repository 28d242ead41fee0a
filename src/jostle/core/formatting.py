"""Numbers as readers see them: fractions as percentages, differences in points, intervals in brackets, times."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

MAX_VALUE_CHARS = 200  # of a value, in messages


def percent(value: float | None, digits: int = 2) -> str:
    """Format a fraction as a percentage, `n/a` where there is none.

    >>> percent(0.61534), percent(None), percent(-1e-9)
    ('61.53', 'n/a', '0.00')
    """
    return "n/a" if value is None or math.isnan(value) else f"{100 * value:z.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """Format a difference of fractions in points, with its sign.

    >>> signed(-0.01), signed(-1e-9)
    ('-1.00', '+0.00')
    """
    return "n/a" if value is None else f"{100 * value:+z.{digits}f}"


def between(ends: Sequence[float] | None, digits: int = 2) -> str:
    """Format an interval of fractions as percentages, empty where there is none.

    >>> between((0.1, 0.25)), between(None)
    ('[10.00, 25.00]', '')
    """
    return "" if ends is None else f"[{percent(ends[0], digits)}, {percent(ends[1], digits)}]"


def time_of(seconds: float) -> str:
    """Format seconds for reading.

    >>> time_of(50), time_of(600), time_of(20000)
    ('50 s', '10 min', '5.6 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def escape(text: str) -> str:
    """Return a text as it may be printed: line ends and other control characters escaped.

    >>> escape("a\\nb")
    'a\\\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Return a text with control characters and line ends as spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def markdown_escape(text: str) -> str:
    """Return a text that stays text in Markdown, also in a table."""
    return re.sub(r"([\\`*_|\[\]~#])", r"\\\1", one_line(text).replace("&", "&amp;").replace("<", "&lt;"))


def yaml_quote(text: str) -> str:
    """Return a text as a quoted scalar of YAML, which is read as nothing else."""
    return f'"{"".join(map(_yaml_letter, text))}"'


def _yaml_letter(letter: str) -> str:
    """Escape one character for double quotes; JSON's surrogate pairs would be read as two characters."""
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def join_names(names: Iterable[str], *, limit: int = 3, separator: str = ", ") -> str:
    """Join the first few names, and say how many more there are.

    >>> join_names("abcde")
    'a, b, c and 2 more'
    """
    all_names = list(names)
    rest = f" and {len(all_names) - limit} more" if len(all_names) > limit else ""
    return separator.join(all_names[:limit]) + rest


def describe(value: object) -> str:
    """Describe a JSON value for a message.

    >>> describe([1, 2]), describe(None), describe("x")
    ('a list of 2', 'null', "the text 'x'")
    """
    if isinstance(value, dict):
        return f"an object with keys {join_names(map(repr, value), limit=5)}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        return f"the text {value if len(value) <= 40 else value[:40] + '...'!r}"
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else f"a {type(value).__name__}"


def shorten(value: object) -> str:
    """Return the `repr` of a value for a message, cut off where it is long."""
    text = repr(value)
    return text if len(text) <= MAX_VALUE_CHARS else text[:MAX_VALUE_CHARS] + "..."


def without_nan(value: Any) -> Any:
    """Return JSON content with None in place of NaN and infinities, which JSON does not have.

    >>> without_nan({"a": [float("nan"), 1.5]})
    {'a': [None, 1.5]}
    """
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
