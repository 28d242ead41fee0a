"""Metadata of sampled frames, from their times: what processors and servers ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

TICKS = 1000.0  # "frames" a second in which times are written; processors know times only as numbers of frames


def video_metadata(times: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return `fps`, `frames_indices`, `total_num_frames` and `duration` that give frames their true times.

    A processor computes the time of a frame as its index divided by fps, and the rate of the frames as their
    number divided by the duration. Frames are at the middles of equal parts, so the parts are as long as the distance
    of two frames, and the first part begins half of that before the first frame.

    >>> known = video_metadata(np.array([0.5, 1.5, 2.5]))
    >>> known["frames_indices"], known["total_num_frames"], known["duration"]
    ([500, 1500, 2500], 3000, 3.0)
    """
    count = len(times)
    part = float(times[-1] - times[0]) / (count - 1) if count > 1 else 2 * float(times[0])
    duration = max(part * count, 1 / TICKS)
    return {
        "fps": TICKS,
        "frames_indices": [round(time * TICKS) for time in times.tolist()],
        "total_num_frames": max(round(duration * TICKS), 1),
        "duration": duration,
    }
