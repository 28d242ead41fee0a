"""Tables of rows with errors that name the line: CSV, and JSON as a list, lines or an object of rows."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.formatting import describe
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.files.text import parse_json, read_json_list

# Plain decimal numbers only: float() would also accept 1_000, surrounding spaces and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
MAX_TEXT = 100_000  # characters of a question, an option or an answer


def parse_number(text: str) -> float | str:
    """Parse a decimal number, NaN or infinity; return the text itself if it is none.

    >>> parse_number(" 1.50"), parse_number("-inf"), parse_number("1,5"), parse_number("1_0")
    (1.5, -inf, '1,5', '1_0')
    """
    field = text.strip()
    return float(field) if _NUMBER.fullmatch(field) or _NOT_FINITE.fullmatch(field) else text


def require_number(source: Source, line: int, name: str, text: str) -> float:
    """Parse a number, or raise a DataError that names its line."""
    if _NUMBER.fullmatch(text):
        return float(text)
    value = parse_number(text)
    if isinstance(value, float):
        return value
    comma = "; write a decimal point, not a comma" if re.fullmatch(r"\s*-?\d+,\d+\s*", text) else "; correct it"
    raise DataError(f"{source.path}: line {line}: {name} is {text[:40]!r}, not a number{comma}", fault="F41")


def read_csv_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file after its header, with line numbers; blank lines are skipped.

    Raises:
        DataError: F39 if a row has another number of fields than the header.
    """
    reader = csv.reader(io.StringIO(source.text, newline="\n"), strict=True)
    try:
        width = len(next(reader, []))
        for fields in reader:
            if len(fields) == width:
                yield reader.line_num, fields
            elif fields:
                if source.is_cut and reader.line_num > source.text.count("\n"):
                    raise source.cut_line()
                raise DataError(
                    f"{source.path}: line {reader.line_num} has {len(fields)} field(s), the header {width}; quote "
                    'fields that hold a comma ("a, b"), or write the file again',
                    fault="F39",
                )
    except csv.Error as error:
        raise DataError(
            f"{source.path}: line {reader.line_num}: {error}; the file looks cut off or badly quoted", fault="F39"
        ) from None


def format_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield pieces of a CSV file, with floats at full precision."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for count, row in enumerate(rows, 1):
        writer.writerow(row)
        if count % 10_000 == 0:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


@dataclass(frozen=True)
class TableRow:
    """One row of a file, with its location for messages."""

    where: str  # such as `val.csv: line 3`
    values: Mapping[str, Any]
    from_csv: bool = False  # whether all values are text

    def first(self, *keys: str) -> Any:
        """Return the value of the first of these keys that the row has; None if it has none."""
        return next((self.values[key] for key in keys if key in self.values), None)

    def text(self, *keys: str) -> str:
        """Return the text of the first of these keys; raise F45 if there is none."""
        value = self.first(*keys)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
            raise DataError(f"{self.where}: {keys[0]!r} is {describe(value)}, not text; fill it in", fault="F45")
        text = str(value)
        if len(text) > MAX_TEXT:
            raise DataError(
                f"{self.where}: {keys[0]!r} has {len(text)} characters; no such text is that long", fault="F38"
            )
        return text

    def number(self, *keys: str) -> float | None:
        """Return the number of the first of these keys, None if there is none; raise F41 if it is not a number."""
        value = self.first(*keys)
        if value is None or value == "":
            return None
        return require_float(value, f"{self.where}: {keys[0]!r}")

    def texts(self, *keys: str) -> tuple[str, ...]:
        """Return a list of texts, which CSV holds as JSON; raise F39 if it is none."""
        value = self.first(*keys)
        if self.from_csv and isinstance(value, str):
            value = _load(value)
        if not isinstance(value, list) or not all(isinstance(one, str | int | float) for one in value):
            raise DataError(f"{self.where}: {keys[0]!r} is {describe(value)}, not a list of texts", fault="F39")
        return tuple(map(str, value))


def require_float(value: object, what: str) -> float:
    """Return a finite number, or raise F41."""
    if isinstance(value, str):
        value = parse_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{what} is {describe(value)}, not a finite number; correct it", fault="F41")
    return float(value)


def read_rows(source: Source) -> list[TableRow] | None:
    """Return the rows of a JSON list, of JSON lines or of CSV with a header; None for any other file.

    Raises:
        DataError: if the file is broken, or a row is no object.
    """
    if source.is_folder:
        return None
    if source.is_text:
        return [_csv_row(source, line, fields) for line, fields in read_csv_rows(source)] if source.header else None
    if not source.is_json:
        return None
    if source.head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] == b"[":
        rows = read_json_list(source.path)
        return [_object(f"{source.path}: entry {number}", row) for number, row in enumerate(rows, 1)]
    if is_json_lines(source):
        return [TableRow(where, values) for where, values in _json_lines(source)]
    return None


def is_json_lines(source: Source) -> bool:
    """Return whether the first line is a JSON object of its own, and further lines are objects too."""
    if source.is_folder or not source.is_json:
        return False
    lines = [line for line in source.head.decode("utf-8", "replace").lstrip("\ufeff").splitlines() if line.strip()]
    if not lines or not lines[0].lstrip().startswith("{"):
        return False
    if ".jsonl" in (suffix.lower() for suffix in source.path.suffixes[-2:]):
        return True
    if _load(lines[0]) is None:
        return len(lines) == 1 and len(source.head) >= 1 << 16 and "\n" in source.text  # one long line
    return len(lines) > 1


def _load(text: str) -> Any:
    """Parse JSON; None if it is broken."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_lines(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(source.lines, 1):
        if line.strip():
            where = f"{source.path}: line {number}"
            yield where, parse_json(line, where)


def _object(where: str, row: object) -> TableRow:
    if not isinstance(row, dict):
        raise DataError(f"{where} is {describe(row)}, not an object; the file is no table", fault="F39")
    return TableRow(where, row)


def _csv_row(source: Source, line: int, fields: Sequence[str]) -> TableRow:
    if len(fields) != len(source.header):  # a header too long to be recognised by
        raise DataError(f"{source.path}: line 1: the header is too long to be one; check the file", fault="F39")
    return TableRow(f"{source.path}: line {line}", dict(zip(source.header, fields, strict=True)), from_csv=True)
