"""A few frames as a moving picture that any browser shows: an animated PNG, with nothing but the standard library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import MissingExtra

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def animated_png(frames: npt.NDArray[np.uint8], delays_s: Sequence[float]) -> bytes:
    """Frames (T, H, W, 3) that are shown one after the other, without end.

    Args:
        delays_s: how long each is shown, in seconds.
    """
    height, width = frames.shape[1:3]
    made = [_SIGNATURE, _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
    made.append(_chunk(b"acTL", struct.pack(">II", len(frames), 0)))
    number = 0
    for i, (frame, delay) in enumerate(zip(frames, delays_s, strict=True)):
        thousandths = min(max(round(1000 * delay), 1), 65535)
        control = struct.pack(">IIIIIHHBB", number, width, height, 0, 0, thousandths, 1000, 0, 0)
        made.append(_chunk(b"fcTL", control))
        number += 1
        data = _packed(frame)
        if i:
            made.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
            number += 1
        else:
            made.append(_chunk(b"IDAT", data))
    return b"".join([*made, _chunk(b"IEND", b"")])


def _packed(frame: npt.NDArray[np.uint8]) -> bytes:
    """Rows with the filter that looks up, which suits pictures and costs one subtraction."""
    rows = frame.reshape(len(frame), -1)
    above = np.vstack([np.zeros_like(rows[:1]), rows[:-1]])
    filtered = np.hstack([np.full((len(rows), 1), 2, np.uint8), rows - above])
    return zlib.compress(filtered.tobytes(), 6)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


MOST = 60  # rows that are shown; more than that belongs into a data frame
_CELL = "padding:.15em .8em .15em 0;border-bottom:1px solid rgba(128,128,128,.35);background:none"


def html_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[str] = (), folded: bool = False
) -> str:
    """A table under a title: the first column to the left, the others to the right.

    Args:
        notes: what has to be known to read it.
        folded: show the rows only when they are asked for.

    >>> "&lt;b&gt;" in html_table("<b>", ["a"], [["<i>"]])
    True
    """
    made = [_row("th", heads, strong=True), *(_row("td", row) for row in rows[:MOST])]
    more = f"<p>{len(rows) - MOST} more rows; to_frame() has them all</p>" if len(rows) > MOST else ""
    table = f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">{"".join(made)}</table>{more}'
    if folded:
        table = f"<details><summary>{len(rows)} rows</summary>{table}</details>"
    said = "".join(f'<p style="opacity:.75;margin:.3em 0">{escape(note)}</p>' for note in notes)
    return f'<div class="jostle"><p style="margin:.3em 0"><b>{escape(title)}</b></p>{table}{said}</div>'


def _row(kind: str, cells: Sequence[str], *, strong: bool = False) -> str:
    weight = "font-weight:bold" if strong else "font-weight:normal"
    made = []
    for i, cell in enumerate(cells):
        side = "right" if i else "left"
        made.append(f'<{kind} style="text-align:{side};{weight};{_CELL}">{escape(str(cell))}</{kind}>')
    return f"<tr>{''.join(made)}</tr>"


def percents(value: float | None, ends: Sequence[float] | None = None, digits: int = 2) -> str:
    """A fraction as a percentage, with its interval behind it.

    >>> percents(0.5, (0.4, 0.6), 1), percents(None)
    ('50.0 [40.0, 60.0]', 'n/a')
    """
    if value is None:
        return "n/a"
    said = f"{100 * value:z.{digits}f}"
    return said if ends is None else f"{said} [{100 * ends[0]:z.{digits}f}, {100 * ends[1]:z.{digits}f}]"


def progress_html(what: str, done: int, total: int) -> str:
    """A bar with words beside it.

    >>> "3 of 4" in progress_html("counting", 3, 4)
    True
    """
    return f'<label>{escape(what)} <progress value="{done}" max="{total}"></progress> {done} of {total}</label>'


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame.

    Raises:
        MissingExtra: if pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a data frame (pandas)", "notebook") from None
    return pandas.DataFrame(dict(columns))
