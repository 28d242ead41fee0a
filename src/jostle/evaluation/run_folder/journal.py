"""Journals: files of one JSON record per line, validated line by line."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from jostle.errors import DataError, ResourceError
from jostle.evaluation.run_folder.events import CellWritten, Event, VideoList, event_to_dict, parse_event
from jostle.io.files.records import ValidationError

R = TypeVar("R")
LARGEST = 512 << 20  # bytes; the journal of a million videos is smaller


def check_regular_file(path: Path) -> None:
    """Raise a DataError if a path exists and is not a regular file: reading a pipe might never end."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise DataError(f"{path}: not a regular file; remove it, and the same `jostle run` resumes", fault="F110")


def read_bytes_checked(path: Path) -> bytes:
    """Read a regular file of limited size.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        check_regular_file(path)
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path}: larger than {LARGEST} bytes; start again in a new folder", fault="F110")
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); check its type and permissions", fault="F110"
        ) from None


def parse_lines(path: Path, data: bytes, fit: Callable[[Any], R], remedy: str) -> Iterator[R]:
    """Yield the record of each complete line; an incomplete last line is ignored.

    Args:
        path: of the file, for messages.
        fit: converts a plain value to a record, or raises `ValidationError`.
        remedy: what to do about a damaged line.

    Raises:
        DataError: if a line is not JSON, or not such a record.
    """
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield fit(json.loads(line))
        except (ValueError, RecursionError, ValidationError) as error:
            why = f" ({error})" if isinstance(error, ValidationError) else ""
            raise DataError(f"{path}: line {number} is damaged{why}; {remedy}", fault="F110") from None


def read_events(path: Path) -> list[Event]:
    """Read the events of a journal; an incomplete last line is ignored.

    Raises:
        DataError: if the file cannot be read, or a complete line is not an event.
    """
    return _parse_events(path, read_bytes_checked(path) if os.path.lexists(path) else b"")


class Journal:
    """Journal open for writing by the process that owns its folder.

    Attributes:
        events: events so far.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            check_regular_file(path)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
        try:
            data = read_bytes_checked(path)
            self.events = _parse_events(path, data)
            os.ftruncate(self._handle, data.rfind(b"\n") + 1)  # drop the incomplete line of a killed process
        except BaseException:
            os.close(self._handle)
            raise

    def note(self, event: Event) -> None:
        """Add an event; it is on the disk when this returns.

        Raises:
            ResourceError: if the disk is full.
        """
        line = json.dumps(event_to_dict(event), allow_nan=False).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._handle, line) :]
            os.fsync(self._handle)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ResourceError(f"no space left on the disk for {self._path}; free some, then run again") from None
            raise DataError(f"{self._path}: cannot be written ({error.strerror})") from None
        self.events.append(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)


def _parse_events(path: Path, data: bytes) -> list[Event]:
    lists: set[str] = set()

    def event(plain: Any) -> Event:
        parsed = parse_event(plain)
        if isinstance(parsed, VideoList):
            lists.add(parsed.key)
        elif isinstance(parsed, CellWritten) and parsed.list not in lists:
            raise ValidationError(f"is {parsed.list!r}, which no earlier line defines").under("list")
        return parsed

    return list(parse_lines(path, data, event, "remove it, and the work it records is done again"))
