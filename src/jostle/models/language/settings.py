"""Settings of a video-language model, written behind its name as in `hf:ORG/NAME?answers=text`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from jostle.errors import BadValue


def split_settings(name: str, known: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a name without its settings, and the settings in the types of their defaults.

    Args:
        name: the name, perhaps with `?setting=value&setting=value` behind it, before a `#`.
        known: settings with their defaults.

    Raises:
        BadValue: if there is no such setting, it is given twice, or its value does not fit.

    >>> split_settings("folder?answers=text", {"answers": "log_probs", "tokens": 16})
    ('folder', {'answers': 'text', 'tokens': 16})
    """
    front, _, fragment = name.partition("#")
    plain, mark, query = front.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True) if mark else []
    values = dict(pairs)
    unknown = [key for key, _ in pairs if key not in known]
    if unknown or len(values) < len(pairs) or (mark and not pairs):
        what = f"has no setting {unknown[0]!r}" if unknown else "has a setting without a value, or twice"
        raise BadValue(f"{name}: {what}; write {plain}?NAME=VALUE&NAME=VALUE, with {', '.join(known)}")
    settings = dict(known)
    for key, text in values.items():
        try:
            settings[key] = type(known[key])(text)
        except ValueError:
            raise BadValue(f"{name}: {key} is {known[key]!r} or the like, not {text!r}") from None
    return plain + (f"#{fragment}" if fragment else ""), settings
