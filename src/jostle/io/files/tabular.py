"""Tables and lists in text files: fields by column, numbers as written, and the line of whatever is wrong."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from jostle.errors import DataError
from jostle.io.files.source import Source

# Nothing but plain decimal numbers: float() would also take 1_000, surrounding spaces and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def number_in(text: str) -> float | str:
    """The number a field holds, NaN and infinities among them, or the field itself if it holds none.

    >>> number_in(" 1.50"), number_in("-inf"), number_in("1,5"), number_in("1_0")
    (1.5, -inf, '1,5', '1_0')
    """
    field = text.strip()
    return float(field) if _NUMBER.fullmatch(field) or _NOT_FINITE.fullmatch(field) else text


def needed_number(source: Source, line: int, name: str, text: str) -> float:
    """The number in a field, or an error that names its line."""
    if _NUMBER.fullmatch(text):
        return float(text)
    value = number_in(text)
    if isinstance(value, float):
        return value
    comma = "; write a decimal point, not a comma" if re.fullmatch(r"\s*-?\d+,\d+\s*", text) else "; correct it"
    raise DataError(f"{source.path}: line {line}: {name} is {text[:40]!r}, not a number{comma}", fault="F41")


def csv_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file after its header, each with the number of its last line; blank lines are left out.

    Raises:
        DataError: F39 if a row has not as many fields as the header.
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


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Pieces of a CSV file: quoted where needed, floats at full precision, a line feed at every line's end."""
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
