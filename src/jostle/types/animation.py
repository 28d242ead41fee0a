"""A few frames as a moving picture that any browser shows: an animated PNG, with nothing but the standard library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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
