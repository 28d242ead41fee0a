"""A placement of corruptions in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jostle.extend import BadValue, Timeline, placement


@placement("halves:2")
def halves(argument: str) -> Callable[[Timeline], Any]:
    """The first or the second half of the video."""
    if argument not in ("1", "2"):
        raise BadValue(f"placement 'halves:{argument}': write halves:1 or halves:2")

    def rule(timeline: Timeline) -> Any:
        second = np.arange(timeline.frames) >= timeline.frames // 2
        return second if argument == "2" else ~second

    return rule
