"""The lines of an old screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.extend import corruption


@corruption(level="frame", scale=(10, 20, 40, 70, 110))
def scan_lines(frame: Any, depth: int, at: Any) -> Any:
    """Every other row darker by `depth` grey levels."""
    out = frame.astype(np.int16)
    out[::2] -= depth
    return np.maximum(out, 0).astype(np.uint8)
