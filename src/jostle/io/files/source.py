"""An annotation or prediction file being read: recognised by content, and parsed once."""

from __future__ import annotations

import csv
import os
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from jostle.errors import DataError
from jostle.io.files.prediction_table import DetectionRows
from jostle.io.files.text import parse_json, read_bytes, read_head, read_text

# Twenty million detections; they are read into columns, so the text takes most of the memory.
MAX_BYTES = 2 << 30

_SPACE = b" \t\r\n\xef\xbb\xbf"
# Pickles of Python 2 have no magic bytes: they begin with a dict, a list, or the import of a name.
_OLD_PICKLE = re.compile(rb"\(d|\(l|\}q|\]q|c[\w.]+\n[\w.]+\n")
_PICKLE_SUFFIXES = frozenset((".pkl", ".pickle"))


class Source:
    """A file, plain or gzipped, or a folder of text files.

    Attributes:
        path: of the file or folder.
        is_folder: whether it is a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.is_folder = self.path.is_dir()
        except ValueError:  # a NUL in the path; reading reports it
            self.is_folder = False

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked; empty for a folder."""
        return b"" if self.is_folder else read_head(self.path)

    @property
    def is_json(self) -> bool:
        """Whether the file begins like JSON; an empty file counts, so that it is refused as broken."""
        return not self.is_folder and self.head.lstrip(_SPACE)[:1] in (b"{", b"[", b"")

    @property
    def is_pickle(self) -> bool:
        """Whether the file begins like a pickle, or is named like one and begins like nothing else."""
        if self.head[:1] == b"\x80" or _OLD_PICKLE.match(self.head):
            return True
        return not self.is_json and bool(_PICKLE_SUFFIXES & {suffix.lower() for suffix in self.path.suffixes[-2:]})

    @property
    def is_text(self) -> bool:
        """Whether the file consists of lines of text."""
        return not (self.is_folder or self.is_json or self.is_pickle)

    @cached_property
    def content(self) -> bytearray:
        """All bytes of the file, unpacked."""
        return read_bytes(self.path, max_bytes=MAX_BYTES)

    @cached_property
    def text(self) -> str:
        """The text, with a line feed at every line's end; the last may have none."""
        return read_text(self.path, max_bytes=MAX_BYTES)

    @property
    def lines(self) -> list[str]:
        """The lines of a text file, without their ends."""
        lines = self.text.split("\n")
        return lines if lines[-1] else lines[:-1]

    @cached_property
    def header(self) -> tuple[str, ...]:
        """Lower-case column names in the first line of a text file."""
        if not self.is_text:
            return ()
        first = re.split(r"[\r\n]", self.head.decode("utf-8", "replace").removeprefix("\ufeff"), maxsplit=1)[0]
        return tuple(name.strip().lower() for name in next(csv.reader([first]), []))

    @cached_property
    def words(self) -> list[str]:
        """Words of the first non-empty line of a text file."""
        if not self.is_text:
            return []
        return next(
            (words for line in self.head.decode("utf-8", "replace").splitlines() if (words := line.split())), []
        )

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON object, with detections moved to the columns of `rows`."""
        self.rows = DetectionRows()
        text = read_text(self.path, max_bytes=MAX_BYTES)
        return parse_json(text, self.path, each_object=self.rows.collect, constants=float)

    @cached_property
    def plain_document(self) -> dict[str, Any]:
        """The complete JSON object, with its detections."""
        document = self.document
        return document if not len(self.rows) else parse_json(read_text(self.path), self.path, constants=float)

    @property
    def is_cut(self) -> bool:
        """Whether the last line is not terminated, as after a killed writer."""
        return not self.text.endswith("\n")

    def cut_line(self) -> DataError:
        """Return the error for an unterminated last line."""
        last = self.text.rpartition("\n")[2]
        return DataError(
            f"{self.path}: the last line, {self.text.count(chr(10)) + 1}, has no line end and may be cut off: "
            f"{last[:60]!r}; write the file again, or end the line if it is whole",
            fault="F39",
        )
