"""The median over a square of seven by seven pixels, by a sorting network whose wires are rows of bytes.

A step takes the smaller and the larger of two rows, value by value, which vector units do sixteen or more at a time,
and neighbouring squares share what they have in common: a column is sorted once, and so is each group of two and of
three. Bytes are only compared, so they are the same on every machine.
"""

from __future__ import annotations

import cv2
import numpy as np

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame

TILE = 672  # values of a row done at once: 224 pixels, whose 42 lines of scratch memory stay in the fastest cache
STRIDE = 704  # from line to line; a constant, since the compiler must see that lines do not overlap


def median_of_seven(frame: Frame, out: Frame) -> Frame:
    """The median of each channel over seven by seven pixels; edges are replicated."""
    padded = np.asarray(cv2.copyMakeBorder(frame, 3, 3, 3, 3, cv2.BORDER_REPLICATE), np.uint8)
    _median_of_seven(padded.reshape(len(padded), -1), out.reshape(len(out), -1))
    return out


# What follows is written by tests/golden/median_network.py.


@kernel
def _median_of_seven(padded: Frame, out: Frame) -> None:
    height, width = out.shape
    line = np.empty(42 * STRIDE, np.uint8)
    for y in range(height):
        for first in range(0, width, TILE):
            # Never below 0: this hint lets the compiler vectorise.
            n = max(min(width - first, TILE), 0)
            r0 = padded[y + 0, first:]
            r1 = padded[y + 1, first:]
            r2 = padded[y + 2, first:]
            r3 = padded[y + 3, first:]
            r4 = padded[y + 4, first:]
            r5 = padded[y + 5, first:]
            r6 = padded[y + 6, first:]
            result = out[y, first:]
            # Columns of seven, sorted.
            for x in range(n + 18):
                v0, v1, v2 = r0[x], r1[x], r2[x]
                v3, v4, v5 = r3[x], r4[x], r5[x]
                v6 = r6[x]
                v1, v2 = min(v1, v2), max(v1, v2)
                v0, v1 = min(v0, v1), max(v0, v1)
                v2, v1 = min(v2, v1), max(v2, v1)
                v3, v4 = min(v3, v4), max(v3, v4)
                v5, v6 = min(v5, v6), max(v5, v6)
                v3, v5 = min(v3, v5), max(v3, v5)
                v4, v6 = min(v4, v6), max(v4, v6)
                v4, v5 = min(v4, v5), max(v4, v5)
                v0, v3 = min(v0, v3), max(v0, v3)
                v1, v5 = min(v1, v5), max(v1, v5)
                v1, v3 = min(v1, v3), max(v1, v3)
                v2, v4 = min(v2, v4), max(v2, v4)
                v6, v4 = min(v6, v4), max(v6, v4)
                v2, v1 = min(v2, v1), max(v2, v1)
                v6, v3 = min(v6, v3), max(v6, v3)
                v4, v5 = min(v4, v5), max(v4, v5)
                line[x + 0 * STRIDE], line[x + 1 * STRIDE], line[x + 2 * STRIDE] = v0, v2, v1
                line[x + 3 * STRIDE], line[x + 4 * STRIDE], line[x + 5 * STRIDE] = v6, v3, v4
                line[x + 6 * STRIDE] = v5
            # Two neighbouring columns as one.
            for x in range(n + 15):
                v0, v1, v2 = line[x + 0 * STRIDE], line[x + 1 * STRIDE], line[x + 2 * STRIDE]
                v3, v4, v5 = line[x + 3 * STRIDE], line[x + 4 * STRIDE], line[x + 5 * STRIDE]
                v6, v7, v8 = line[x + 6 * STRIDE], line[x + 0 * STRIDE + 3], line[x + 1 * STRIDE + 3]
                v9, v10, v11 = line[x + 2 * STRIDE + 3], line[x + 3 * STRIDE + 3], line[x + 4 * STRIDE + 3]
                v12, v13 = line[x + 5 * STRIDE + 3], line[x + 6 * STRIDE + 3]
                v0, v7 = min(v0, v7), max(v0, v7)
                v4, v11 = min(v4, v11), max(v4, v11)
                v4, v7 = min(v4, v7), max(v4, v7)
                v2, v9 = min(v2, v9), max(v2, v9)
                v6, v13 = min(v6, v13), max(v6, v13)
                v6, v9 = min(v6, v9), max(v6, v9)
                v2, v4 = min(v2, v4), max(v2, v4)
                v6, v7 = min(v6, v7), max(v6, v7)
                v9, v11 = min(v9, v11), max(v9, v11)
                v1, v8 = min(v1, v8), max(v1, v8)
                v5, v12 = min(v5, v12), max(v5, v12)
                v5, v8 = min(v5, v8), max(v5, v8)
                v3, v10 = min(v3, v10), max(v3, v10)
                v3, v5 = min(v3, v5), max(v3, v5)
                v10, v8 = min(v10, v8), max(v10, v8)
                v1, v2 = min(v1, v2), max(v1, v2)
                v3, v4 = min(v3, v4), max(v3, v4)
                v5, v6 = min(v5, v6), max(v5, v6)
                v10, v7 = min(v10, v7), max(v10, v7)
                v8, v9 = min(v8, v9), max(v8, v9)
                v12, v11 = min(v12, v11), max(v12, v11)
                line[x + 7 * STRIDE], line[x + 8 * STRIDE], line[x + 9 * STRIDE] = v0, v1, v2
                line[x + 10 * STRIDE], line[x + 11 * STRIDE], line[x + 12 * STRIDE] = v3, v4, v5
                line[x + 13 * STRIDE], line[x + 14 * STRIDE], line[x + 15 * STRIDE] = v6, v10, v7
                line[x + 16 * STRIDE], line[x + 17 * STRIDE], line[x + 18 * STRIDE] = v8, v9, v12
                line[x + 19 * STRIDE], line[x + 20 * STRIDE] = v11, v13
            # Three.
            for x in range(n + 12):
                v0, v1, v2 = line[x + 7 * STRIDE], line[x + 8 * STRIDE], line[x + 9 * STRIDE]
                v3, v4, v5 = line[x + 10 * STRIDE], line[x + 11 * STRIDE], line[x + 12 * STRIDE]
                v6, v7, v8 = line[x + 13 * STRIDE], line[x + 14 * STRIDE], line[x + 15 * STRIDE]
                v9, v10, v11 = line[x + 16 * STRIDE], line[x + 17 * STRIDE], line[x + 18 * STRIDE]
                v12, v13, v14 = line[x + 19 * STRIDE], line[x + 20 * STRIDE], line[x + 0 * STRIDE + 6]
                v15, v16, v17 = line[x + 1 * STRIDE + 6], line[x + 2 * STRIDE + 6], line[x + 3 * STRIDE + 6]
                v18, v19, v20 = line[x + 4 * STRIDE + 6], line[x + 5 * STRIDE + 6], line[x + 6 * STRIDE + 6]
                v0, v14 = min(v0, v14), max(v0, v14)
                v8, v14 = min(v8, v14), max(v8, v14)
                v4, v18 = min(v4, v18), max(v4, v18)
                v12, v18 = min(v12, v18), max(v12, v18)
                v4, v8 = min(v4, v8), max(v4, v8)
                v12, v14 = min(v12, v14), max(v12, v14)
                v2, v16 = min(v2, v16), max(v2, v16)
                v10, v16 = min(v10, v16), max(v10, v16)
                v6, v20 = min(v6, v20), max(v6, v20)
                v6, v10 = min(v6, v10), max(v6, v10)
                v20, v16 = min(v20, v16), max(v20, v16)
                v2, v4 = min(v2, v4), max(v2, v4)
                v6, v8 = min(v6, v8), max(v6, v8)
                v10, v12 = min(v10, v12), max(v10, v12)
                v20, v14 = min(v20, v14), max(v20, v14)
                v16, v18 = min(v16, v18), max(v16, v18)
                v1, v15 = min(v1, v15), max(v1, v15)
                v9, v15 = min(v9, v15), max(v9, v15)
                v5, v19 = min(v5, v19), max(v5, v19)
                v13, v19 = min(v13, v19), max(v13, v19)
                v5, v9 = min(v5, v9), max(v5, v9)
                v13, v15 = min(v13, v15), max(v13, v15)
                v3, v17 = min(v3, v17), max(v3, v17)
                v11, v17 = min(v11, v17), max(v11, v17)
                v7, v11 = min(v7, v11), max(v7, v11)
                v3, v5 = min(v3, v5), max(v3, v5)
                v7, v9 = min(v7, v9), max(v7, v9)
                v11, v13 = min(v11, v13), max(v11, v13)
                v17, v15 = min(v17, v15), max(v17, v15)
                v1, v2 = min(v1, v2), max(v1, v2)
                v3, v4 = min(v3, v4), max(v3, v4)
                v5, v6 = min(v5, v6), max(v5, v6)
                v7, v8 = min(v7, v8), max(v7, v8)
                v9, v10 = min(v9, v10), max(v9, v10)
                v11, v12 = min(v11, v12), max(v11, v12)
                v13, v20 = min(v13, v20), max(v13, v20)
                v17, v14 = min(v17, v14), max(v17, v14)
                v15, v16 = min(v15, v16), max(v15, v16)
                v19, v18 = min(v19, v18), max(v19, v18)
                line[x + 21 * STRIDE], line[x + 22 * STRIDE], line[x + 23 * STRIDE] = v0, v1, v2
                line[x + 24 * STRIDE], line[x + 25 * STRIDE], line[x + 26 * STRIDE] = v3, v4, v5
                line[x + 27 * STRIDE], line[x + 28 * STRIDE], line[x + 29 * STRIDE] = v6, v7, v8
                line[x + 30 * STRIDE], line[x + 31 * STRIDE], line[x + 32 * STRIDE] = v9, v10, v11
                line[x + 33 * STRIDE], line[x + 34 * STRIDE], line[x + 35 * STRIDE] = v12, v13, v20
                line[x + 36 * STRIDE], line[x + 37 * STRIDE], line[x + 38 * STRIDE] = v17, v14, v15
                line[x + 39 * STRIDE], line[x + 40 * STRIDE], line[x + 41 * STRIDE] = v16, v19, v18
            # Three on the left and three on the right, about their middle; then the column between them.
            for x in range(n):
                v0, v1, v2 = line[x + 21 * STRIDE], line[x + 22 * STRIDE], line[x + 23 * STRIDE]
                v3, v4, v5 = line[x + 24 * STRIDE], line[x + 25 * STRIDE], line[x + 26 * STRIDE]
                v6, v7, v8 = line[x + 27 * STRIDE], line[x + 28 * STRIDE], line[x + 29 * STRIDE]
                v9, v10, v11 = line[x + 30 * STRIDE], line[x + 31 * STRIDE], line[x + 32 * STRIDE]
                v12, v13, v14 = line[x + 33 * STRIDE], line[x + 34 * STRIDE], line[x + 35 * STRIDE]
                v15, v16, v17 = line[x + 36 * STRIDE], line[x + 37 * STRIDE], line[x + 38 * STRIDE]
                v18, v19, v20 = line[x + 39 * STRIDE], line[x + 40 * STRIDE], line[x + 41 * STRIDE]
                v21, v22, v23 = line[x + 21 * STRIDE + 12], line[x + 22 * STRIDE + 12], line[x + 23 * STRIDE + 12]
                v24, v25, v26 = line[x + 24 * STRIDE + 12], line[x + 25 * STRIDE + 12], line[x + 26 * STRIDE + 12]
                v27, v28, v29 = line[x + 27 * STRIDE + 12], line[x + 28 * STRIDE + 12], line[x + 29 * STRIDE + 12]
                v30, v31, v32 = line[x + 30 * STRIDE + 12], line[x + 31 * STRIDE + 12], line[x + 32 * STRIDE + 12]
                v33, v34, v35 = line[x + 33 * STRIDE + 12], line[x + 34 * STRIDE + 12], line[x + 35 * STRIDE + 12]
                v36, v37, v38 = line[x + 36 * STRIDE + 12], line[x + 37 * STRIDE + 12], line[x + 38 * STRIDE + 12]
                v39, v40, v41 = line[x + 39 * STRIDE + 12], line[x + 40 * STRIDE + 12], line[x + 41 * STRIDE + 12]
                v21 = max(v0, v21)
                v16 = min(v16, v37)
                v21 = max(v16, v21)
                v29 = max(v8, v29)
                v29 = min(v29, v21)
                v25 = max(v4, v25)
                v20 = min(v20, v41)
                v20 = min(v20, v25)
                v12 = min(v12, v33)
                v20 = max(v12, v20)
                v20, v29 = min(v20, v29), max(v20, v29)
                v23 = max(v2, v23)
                v18 = min(v18, v39)
                v18, v23 = min(v18, v23), max(v18, v23)
                v10, v31 = min(v10, v31), max(v10, v31)
                v18 = max(v10, v18)
                v31 = min(v31, v23)
                v27 = max(v6, v27)
                v14 = min(v14, v35)
                v14, v27 = min(v14, v27), max(v14, v27)
                v18 = max(v14, v18)
                v27 = min(v27, v31)
                v18, v20 = min(v18, v20), max(v18, v20)
                v27, v29 = min(v27, v29), max(v27, v29)
                v22 = max(v1, v22)
                v17 = min(v17, v38)
                v17, v22 = min(v17, v22), max(v17, v22)
                v9, v30 = min(v9, v30), max(v9, v30)
                v17 = max(v9, v17)
                v30 = min(v30, v22)
                v26 = max(v5, v26)
                v13 = min(v13, v34)
                v13, v26 = min(v13, v26), max(v13, v26)
                v17 = max(v13, v17)
                v26, v30 = min(v26, v30), max(v26, v30)
                v24 = max(v3, v24)
                v19 = min(v19, v40)
                v19, v24 = min(v19, v24), max(v19, v24)
                v11, v32 = min(v11, v32), max(v11, v32)
                v19 = max(v11, v19)
                v32 = min(v32, v24)
                v28 = max(v7, v28)
                v15 = min(v15, v36)
                v15, v28 = min(v15, v28), max(v15, v28)
                v15, v19 = min(v15, v19), max(v15, v19)
                v28 = min(v28, v32)
                v17 = max(v15, v17)
                v19, v26 = min(v19, v26), max(v19, v26)
                v28 = min(v28, v30)
                v17, v18 = min(v17, v18), max(v17, v18)
                v19, v20 = min(v19, v20), max(v19, v20)
                v26, v27 = min(v26, v27), max(v26, v27)
                v28, v29 = min(v28, v29), max(v28, v29)
                v29 = min(v29, max(v28, line[x + 0 * STRIDE + 9]))
                v29 = min(v29, max(v27, line[x + 1 * STRIDE + 9]))
                v29 = min(v29, max(v26, line[x + 2 * STRIDE + 9]))
                v29 = min(v29, max(v20, line[x + 3 * STRIDE + 9]))
                v29 = min(v29, max(v19, line[x + 4 * STRIDE + 9]))
                v29 = min(v29, max(v18, line[x + 5 * STRIDE + 9]))
                v29 = min(v29, max(v17, line[x + 6 * STRIDE + 9]))
                result[x] = v29
