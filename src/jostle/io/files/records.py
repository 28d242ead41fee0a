"""JSON files that hold one record."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from jostle.core.schema import Mismatch, parse
from jostle.errors import DataError
from jostle.io.files.text import read_json

R = TypeVar("R")


def read_record(kind: type[R], path: Path, remedy: str) -> R:
    """Read a record from a JSON file.

    Args:
        remedy: what to do if the file is missing or damaged, for the message.

    Raises:
        DataError: if the file cannot be read, is not JSON, or does not match the record's schema.
    """
    if not path.exists() and not path.is_symlink():
        raise DataError(f"{path}: does not exist; {remedy}")
    try:
        return parse(kind, read_json(path))
    except Mismatch as error:
        raise DataError(f"{path}: {error}; {remedy}", fault="F110") from None
    except DataError as error:
        raise DataError(f"{error}; {remedy}", fault="F110") from None
