"""Files of one JSON record a line: read from regular files alone, and refused by the number of the line."""

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
from jostle.evaluation.run_folder.events import CellWritten, Event, VideoList, event_of, plain_event
from jostle.io.files.records import Misfit

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


def read_events(path: Path) -> list[Event]:
    """The whole lines of a journal; a last line that was cut off is no event.

    Raises:
        DataError: if the file cannot be read, or a line before the last is no event.
    """
    return _events(path, content_of(path) if os.path.lexists(path) else b"")


class Journal:
    """A journal open for writing, by whoever has the ownership of its folder.

    Attributes:
        events: what has been noted so far.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            refuse_what_is_no_file(path)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
        try:
            data = content_of(path)
            self.events = _events(path, data)
            os.ftruncate(self._handle, data.rfind(b"\n") + 1)  # what a killed process left of a line
        except BaseException:
            os.close(self._handle)
            raise

    def note(self, event: Event) -> None:
        """Add an event; it is on the disk when this returns.

        Raises:
            ResourceError: if the disk is full.
        """
        line = json.dumps(plain_event(event), allow_nan=False).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._handle, line) :]
            os.fsync(self._handle)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ResourceError(f"no room on the disk for {self._path}; free some, then run again") from None
            raise DataError(f"{self._path}: cannot be written ({error.strerror})") from None
        self.events.append(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)


def _events(path: Path, data: bytes) -> list[Event]:
    lists: set[str] = set()

    def event(plain: Any) -> Event:
        made = event_of(plain)
        if isinstance(made, VideoList):
            lists.add(made.key)
        elif isinstance(made, CellWritten) and made.list not in lists:
            raise Misfit(f"is {made.list!r}, of which no line before tells").under("list")
        return made

    return list(records_in(path, data, event, "take it out, and what it stood for is done again"))
