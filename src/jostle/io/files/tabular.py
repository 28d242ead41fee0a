"""Reading and writing of CSV tables, with errors that name the line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from jostle.errors import DataError
from jostle.io.files.source import Source

# Plain decimal numbers only: float() would also accept 1_000, surrounding spaces and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


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
