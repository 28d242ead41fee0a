"""Layout of a frame descriptor: its cells, sample points and channels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CELLS = 12  # along each side
PATCH = 8  # pixels along each side of the patch at full resolution in a cell
POINTS = 4  # along each side of a quarter of a cell, spread over it, for the small copy
LIGHT, COLOUR, DETAIL = slice(0, 4), slice(4, 6), slice(6, 11)  # channels
CHANNELS = 11
FINEST = 4  # detail is stored as log(1 + FINEST * v), v in grey levels
TOP = float(255 / np.log1p(FINEST * 255))

Descriptor = npt.NDArray[np.uint8]  # (CHANNELS, CELLS, CELLS)
Descriptors = npt.NDArray[np.uint8]  # (T, CHANNELS, CELLS, CELLS)
Indices = npt.NDArray[np.int64]
