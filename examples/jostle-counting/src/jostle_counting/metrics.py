"""Share of videos whose events are counted right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle.extend import MeanOverItems, Measured, Metric, metric
from jostle_counting.task import Counts


@metric("exact_count")
class ExactCount(Metric):
    """Share of videos whose number of events is right."""

    task = "counting"
    mean_over = "videos"
    has_intervals = True

    def label(self, options: Any) -> str:
        return "exact counts"

    def measure(self, truth: Counts, predictions: Mapping[str, int], options: Any) -> Measured:
        right = np.array([predictions[name] == number for name, number in truth.events.items()], np.float64)
        return MeanOverItems(truth.videos, right, np.ones(len(right)))
