"""How a glance is laid out: cells, points and channels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CELLS = 12  # along each side
PATCH = 8  # native pixels along each side of what is looked at closely in a cell
POINTS = 4  # along each side of a quarter of a cell, spread over it, for the small copy
LIGHT, COLOUR, DETAIL = slice(0, 4), slice(4, 6), slice(6, 11)  # channels
CHANNELS = 11
FINEST = 4  # detail is kept as log(1 + FINEST * v), v in grey levels
TOP = float(255 / np.log1p(FINEST * 255))

Glance = npt.NDArray[np.uint8]  # (CHANNELS, CELLS, CELLS)
Glances = npt.NDArray[np.uint8]  # (T, CHANNELS, CELLS, CELLS)
Places = npt.NDArray[np.int64]
