"""Files of one JSON record a line: read from regular files alone, and refused by the number of the line."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from jostle.errors import DataError
from jostle.runs.shape import Misfit

R = TypeVar("R")
LARGEST = 512 << 20  # bytes that are read: what is told of a million videos needs less


def refuse_what_is_no_file(path: Path) -> None:
    """Raise a DataError for what is there and is no regular file: reading a pipe might never end."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise DataError(f"{path}: not a regular file; remove it, and the same `jostle run` goes on", fault="F110")


def content_of(path: Path) -> bytes:
    """What lies in a file.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        refuse_what_is_no_file(path)
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path}: larger than {LARGEST} bytes; start again in a new folder", fault="F110")
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); check what lies there and its permissions", fault="F110"
        ) from None


def records_in(path: Path, data: bytes, fit: Callable[[Any], R], remedy: str) -> Iterator[R]:
    """What each whole line of a file tells; a last line that was cut off tells nothing.

    Args:
        path: of the file, for messages.
        fit: makes a record of a plain value, or raises `Misfit`.
        remedy: what to do about a damaged line.

    Raises:
        DataError: at a line that is no JSON, or no such record.
    """
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield fit(json.loads(line))
        except (ValueError, RecursionError, Misfit) as error:
            why = f" ({error})" if isinstance(error, Misfit) else ""
            raise DataError(f"{path}: line {number} is damaged{why}; {remedy}", fault="F110") from None
