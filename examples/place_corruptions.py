"""Print the frames that each placement selects: python examples/place_corruptions.py

Two actions in a clip of eight seconds; every placement blacks out its frames, and a line of text shows them.
"""

from __future__ import annotations

import numpy as np

import jostle

FPS = 10
ACTIONS = [(1.0, 3.5), (5.0, 7.0)]  # seconds
PLACEMENTS = (
    "everywhere",
    "centre:10%",
    "centre:50%",
    "at:20%x3",
    "frame:12",
    "frames:40-50",
    "random:8",
    "background:8",
)


def main() -> None:
    """Print one line a placement: `#` is a corrupted frame, `-` one inside an action, `.` one outside."""
    clean = np.full((8 * FPS, 32, 32, 3), 200, np.uint8)
    inside = {t for start, end in ACTIONS for t in range(round(start * FPS), round(end * FPS))}
    for placement in PLACEMENTS:
        frames = jostle.corrupt(
            clean, "black_frame", placement=placement, segments=ACTIONS, fps=FPS, seed=0, video_id="example"
        )
        corrupted = ~frames.any(axis=(1, 2, 3))
        line = "".join("#" if corrupted[t] else "-" if t in inside else "." for t in range(len(clean)))
        print(f"{placement:14}{line}")


if __name__ == "__main__":
    main()
