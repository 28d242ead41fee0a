"""Lists of video ids: those blocked from scoring, those whose files are missing."""

from __future__ import annotations

import json
from pathlib import Path

from jostle.errors import DataError
from jostle.filing.names import normal_id
from jostle.filing.text import describe, read_text


def read_ids(path: str | Path) -> frozenset[str]:
    """Video ids in normal form: a JSON list of them, or one a line.

    Raises:
        DataError: if the file is neither.
    """
    text = read_text(path)
    if text.lstrip()[:1] not in ("[", "{"):
        return frozenset(normal_id(line.strip()) for line in text.splitlines() if line.strip())
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: broken JSON ({str(error)[:80]}); a list of video ids is needed", fault="F27"
        ) from None
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise DataError(f"{path}: holds {describe(listed)}, not a list of video ids; or write one a line", fault="F28")
    return frozenset(map(normal_id, listed))
