"""A corruption of one's own: jostle corrupt in.mp4 -c dim_rows:3 --import dim_rows -o out.mp4"""

import numpy as np

from jostle.extend import corruption


@corruption(level="frame", scale=(10, 20, 40, 70, 110))
def dim_rows(frame, depth, at):
    """Every second row darker by `depth` grey levels."""
    out = frame.astype(np.int16)
    out[::2] -= depth
    return out.clip(0).astype(np.uint8)
