"""Ledgers: files of one JSON record per line that only grow, by which interrupted work resumes.

Whoever finishes a file renames it into place first and adds its line second. A file without a line was not finished,
and a line whose file is gone, or is not as the line says, counts for nothing.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from jostle.core.schema import Count, Mismatch, parse
from jostle.errors import DataError, JostleError, MediaError, SourceChanged
from jostle.io.files.atomic import disk_error, sync
from jostle.io.video.source import fingerprint_of, source_state

MANIFEST = "manifest.jsonl"  # ledger of the files of a folder
R = TypeVar("R")
Damaged = Literal["redo", "refuse"]
LARGEST = 512 << 20  # bytes; the journal of a million videos is smaller
MAX_VALUE_LENGTH = 80  # characters of a value in a message


class Ledger(Generic[R]):
    """File of one JSON record per line; it is read at any time, and written inside a `with` statement.

    Args:
        path: the file; a missing one has no records.
        parse: converts a decoded line to a record, or raises `Mismatch`.
        dump: converts a record to what JSON can write.
        shared: whether several processes write at once. Then each record begins a line of its own, as the last line of
            another process may be incomplete. A sole owner cuts off the incomplete line that a killed process left.
        damaged: `redo` ignores lines that are damaged, so that what they recorded is done again; `refuse` raises.
        remedy: what to do about a file that cannot be used, for messages.
        fault: fault code of a file that cannot be read.
    """

    def __init__(
        self,
        path: Path,
        parse: Callable[[Any], R],
        *,
        shared: bool,
        damaged: Damaged,
        remedy: str,
        fault: str = "",
        dump: Callable[[Any], Mapping[str, Any]] = asdict,
    ) -> None:
        self.path = path
        self._parse, self._dump = parse, dump
        self._shared, self._damaged, self._remedy, self._fault = shared, damaged, remedy, fault
        self._handle = -1

    def read(self) -> list[R]:
        """Read the record of each complete line.

        Raises:
            DataError: if the file cannot be read, or refuses damage and has a damaged line.
        """
        return list(read_lines(self.path, self._parse, self._damaged, self._remedy, self._fault))

    def add(self, record: R) -> None:
        """Append a record; it is on the disk when this returns.

        Raises:
            ResourceError: if the disk is full.
            DataError: if the file cannot be written.
        """
        line = json.dumps(self._dump(record), allow_nan=False).encode() + b"\n"
        if self._shared:
            line = b"\n" + line
        try:
            while line:
                line = line[os.write(self._handle, line) :]
            os.fsync(self._handle)
        except OSError as error:
            raise disk_error(error, self.path, "written", self._remedy, "F65") from None

    def __enter__(self) -> Self:
        try:
            _check_usable(self.path, self._damaged, self._remedy, self._fault)
            if not self.path.exists():
                self.path.touch()
                sync(self.path.parent)
            elif not self._shared:
                os.truncate(self.path, _end_of_lines(self.path))
            self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise disk_error(error, self.path, "written", self._remedy, "F65") from None
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def read_lines(path: Path, parse: Callable[[Any], R], damaged: Damaged, remedy: str, fault: str = "") -> Iterator[R]:
    """Yield the record of each complete line of a file; see `Ledger` for the arguments."""
    try:
        _check_usable(path, damaged, remedy, fault)
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line == b"\n" or not line.endswith(b"\n"):
                    continue
                try:
                    yield parse(json.loads(line))
                except (ValueError, RecursionError, Mismatch) as error:
                    if damaged == "redo":
                        continue
                    why = f" ({error})" if isinstance(error, Mismatch) else ""
                    raise DataError(f"{path}: line {number} is damaged{why}; {remedy}", fault=fault) from None
    except OSError as error:
        if error.errno == errno.ENOENT and not path.is_symlink():
            return
        raise DataError(f"{path}: cannot be read ({error.strerror}); {remedy}", fault=fault) from None


def check_regular(path: Path, remedy: str, fault: str = "") -> None:
    """Raise a DataError if a path exists and is not a regular file: reading a pipe might never end."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: not a regular file; {remedy}", fault=fault)


def is_unchanged(
    path: Path, state: tuple[int, int], sha256: str, *, now: tuple[int, int] | None = None, verify: bool = False
) -> bool:
    """Return whether a file or a folder of images is as recorded: by size and time, by its content if the time differs.

    Args:
        state: size and modification time, as of `source_state`.
        now: those of today, if they are known.
        verify: compare the content even if the time is the recorded one.

    Raises:
        MediaError: if it cannot be read.
    """
    now = now or source_state(path)
    if now == state and not verify:
        return True
    return now[0] == state[0] and fingerprint_of(path).removeprefix("sha256:") == sha256.removeprefix("sha256:")


@dataclass(frozen=True)
class FileLine:
    """Line of a manifest: a finished file, or folder of images."""

    file: str  # path inside the folder of the manifest, with slashes
    key: str  # everything else that determines its bytes; a file with another key counts as another file
    size: Count
    mtime_ns: int
    sha256: str


class Manifest:
    """Ledger of the files of a folder, which several processes may fill, as they write the same bytes.

    Args:
        remedy, fault: see `Ledger`.

    Attributes:
        lines: last line of each file.
    """

    def __init__(self, folder: Path, remedy: str, fault: str = "") -> None:
        line = partial(parse, FileLine)
        self._folder = folder
        self._ledger = Ledger(folder / MANIFEST, line, shared=True, damaged="redo", remedy=remedy, fault=fault)
        self.lines = {line.file: line for line in self._ledger.read()}

    def create(self) -> None:
        """Create the file if it is missing, so that the folder is known by it before its first file is there."""
        with self._ledger:
            pass

    def add(self, file: str, key: str) -> None:
        """Record a file that is finished now."""
        path = self._folder / file
        self._add(FileLine(file, key, *source_state(path), fingerprint_of(path).removeprefix("sha256:")))

    def is_whole(self, file: str, key: str, *, verify: bool = False) -> bool:
        """Return whether a file is there as its line says, with this key; `verify` reads it even if its time is old."""
        line, path = self.lines.get(file), self._folder / file
        if line is None or line.key != key:
            return False
        try:
            now = source_state(path)
            whole = is_unchanged(path, (line.size, line.mtime_ns), line.sha256, now=now, verify=verify)
        except MediaError:
            return False
        if whole and now[1] != line.mtime_ns:
            # Copied or touched, but identical. In a read-only folder it is hashed again next time.
            with contextlib.suppress(JostleError):
                self._add(replace(line, mtime_ns=now[1]))
        return whole

    def _add(self, line: FileLine) -> None:
        with self._ledger:
            self._ledger.add(line)
        self.lines[line.file] = line


def check_same(
    folder: Path, what: str, before: Mapping[str, Any], now: Mapping[str, Any], remedy: str, fault: str = ""
) -> None:
    """Raise a SourceChanged that names each fact that differs, if a folder holds work of other facts than now.

    >>> check_same(Path("runs/a"), "another run", {"seed": 0}, {"seed": 3}, "use that one")
    Traceback (most recent call last):
    jostle.errors.SourceChanged: runs/a: contains another run: seed was 0, now 3. Name another folder, or use that one
    """
    differences = [
        f"{name} was {_short(was)}, now {_short(value)}"
        for key, fact in now.items()
        for name, was, value in _differences(key, before.get(key), fact)
    ]
    if differences:
        raise SourceChanged(
            f"{folder}: contains {what}: {'; '.join(differences)}. Name another folder, or {remedy}", fault=fault
        )


def _differences(name: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and the two values of what differs, of dictionaries key by key."""
    if was == now:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from _differences(f"{name} {key}", was.get(key), now.get(key))
    else:
        yield name, was, now


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}..."


def _check_usable(path: Path, damaged: Damaged, remedy: str, fault: str) -> None:
    check_regular(path, remedy, fault)
    if damaged == "refuse" and path.exists() and path.stat().st_size > LARGEST:
        raise DataError(f"{path}: larger than {LARGEST} bytes; {remedy}", fault=fault)


def _end_of_lines(path: Path) -> int:
    """Return the offset after the last complete line of a file."""
    with path.open("rb") as file:
        return sum(len(line) for line in file if line.endswith(b"\n"))
