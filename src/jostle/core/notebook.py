"""HTML output for notebooks: animated PNGs and progress bars, without further dependencies."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

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


def progress_html(what: str, done: int, total: int) -> str:
    """Render a progress bar with a label.

    >>> "3 of 4" in progress_html("counting", 3, 4)
    True
    """
    return f'<label>{escape(what)} <progress value="{done}" max="{total}"></progress> {done} of {total}</label>'
