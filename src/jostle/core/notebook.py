"""HTML output for notebooks: animated PNGs, tables and progress bars, without further dependencies."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.formatting import between, percent
from jostle.errors import MissingExtra

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def animated_png(frames: npt.NDArray[np.uint8], delays_s: Sequence[float]) -> bytes:
    """Encode frames (T, H, W, 3) as an animated PNG that loops.

    Args:
        delays_s: display time of each frame in seconds.
    """
    height, width = frames.shape[1:3]
    chunks = [_SIGNATURE, _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
    chunks.append(_chunk(b"acTL", struct.pack(">II", len(frames), 0)))
    number = 0
    for i, (frame, delay) in enumerate(zip(frames, delays_s, strict=True)):
        thousandths = min(max(round(1000 * delay), 1), 65535)
        control = struct.pack(">IIIIIHHBB", number, width, height, 0, 0, thousandths, 1000, 0, 0)
        chunks.append(_chunk(b"fcTL", control))
        number += 1
        data = _compress_frame(frame)
        if i:
            chunks.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
            number += 1
        else:
            chunks.append(_chunk(b"IDAT", data))
    return b"".join([*chunks, _chunk(b"IEND", b"")])


def _compress_frame(frame: npt.NDArray[np.uint8]) -> bytes:
    """Compress a frame with PNG's "up" filter, which suits photographs and costs one subtraction."""
    rows = frame.reshape(len(frame), -1)
    above = np.vstack([np.zeros_like(rows[:1]), rows[:-1]])
    filtered = np.hstack([np.full((len(rows), 1), 2, np.uint8), rows - above])
    return zlib.compress(filtered.tobytes(), 6)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


MAX_ROWS = 60  # of a table; for more there is to_frame()
_CELL = "padding:.15em .8em .15em 0;border-bottom:1px solid rgba(128,128,128,.35);background:none"


def html_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[str] = (), folded: bool = False
) -> str:
    """Render a table with a title; the first column is left-aligned, the others right-aligned.

    Args:
        notes: explanations below the table.
        folded: hide the rows until the reader expands them.

    >>> "&lt;b&gt;" in html_table("<b>", ["a"], [["<i>"]])
    True
    """
    lines = [_row("th", heads, strong=True), *(_row("td", row) for row in rows[:MAX_ROWS])]
    more = f"<p>{len(rows) - MAX_ROWS} more rows; to_frame() has them all</p>" if len(rows) > MAX_ROWS else ""
    table = f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">{"".join(lines)}</table>{more}'
    if folded:
        table = f"<details><summary>{len(rows)} rows</summary>{table}</details>"
    note_html = "".join(f'<p style="opacity:.75;margin:.3em 0">{escape(note)}</p>' for note in notes)
    return f'<div class="jostle"><p style="margin:.3em 0"><b>{escape(title)}</b></p>{table}{note_html}</div>'


def _row(kind: str, cells: Sequence[str], *, strong: bool = False) -> str:
    weight = "font-weight:bold" if strong else "font-weight:normal"
    html = []
    for i, cell in enumerate(cells):
        side = "right" if i else "left"
        html.append(f'<{kind} style="text-align:{side};{weight};{_CELL}">{escape(str(cell))}</{kind}>')
    return f"<tr>{''.join(html)}</tr>"


def format_percent(value: float | None, ends: Sequence[float] | None = None, digits: int = 2) -> str:
    """Format a fraction as a percentage, with its interval if there is one.

    >>> format_percent(0.5, (0.4, 0.6), 1), format_percent(None)
    ('50.0 [40.0, 60.0]', 'n/a')
    """
    text = percent(value, digits)
    return text if value is None or ends is None else f"{text} {between(ends, digits)}"


def progress_html(what: str, done: int, total: int) -> str:
    """Render a progress bar with a label.

    >>> "3 of 4" in progress_html("counting", 3, 4)
    True
    """
    return f'<label>{escape(what)} <progress value="{done}" max="{total}"></progress> {done} of {total}</label>'


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Create a pandas data frame."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a data frame (pandas)", "notebook") from None
    return pandas.DataFrame(dict(columns))
