"""pm-k of object detectors as benchmarks have it: for detection and for localisation, with intervals over videos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.core.results import Result, plain
from jostle.core.tables import Table
from jostle.core.types.boxes import Boxes, FrameBoxes
from jostle.core.types.columns import Floats
from jostle.core.types.frame_sets import BoxSets
from jostle.metrics.frame_sets import Sets
from jostle.metrics.measured import Draws, Measured, Weights
from jostle.metrics.metric import Metric, MetricOptions, metric
from jostle.metrics.pm_k_detection import MatchedFrames, PmKDetection, pm_k_detection, stability_table

DRAWS = 1000  # of the videos, for the intervals


@dataclass(frozen=True)
class BoxStability(Result):
    """pm-k of one detector, for detection and for localisation."""

    classes: int  # number of classes that the detector knows, of the dataset's `of_classes`
    of_classes: int
    detection: PmKDetection  # a box counts if its class is right
    localisation: PmKDetection  # all boxes are of one class

    def tables(self) -> tuple[Table, ...]:
        """Return detection and localisation, on anchors and on the worst frame near each."""
        note = f"intervals: 95 %, from {DRAWS} draws of the videos, each with all its anchors"
        table = stability_table({"detection": self.detection, "localisation": self.localisation}, note=note)
        known = f", on {self.classes} of {self.of_classes} classes, which the detector knows"
        return (replace(table, title=table.title + known) if self.classes < self.of_classes else table,)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON, without the frame chosen for each anchor."""
        content = super().to_dict()
        for name in ("detection", "localisation"):
            del content[name]["chosen"]
        return content


def box_stability(
    detections: Mapping[str, Boxes], truth: Mapping[str, Boxes], sets: Sets, k: int, *, classes: int, of_classes: int
) -> BoxStability:
    """Compute pm-k for detection and localisation, with bootstrap intervals over videos.

    Args:
        detections, truth: by frame, of the classes that the detector knows.
        classes, of_classes: number of classes that it knows, and of the dataset.
    """
    of_class, anywhere = (
        pm_k_detection(detections, truth, sets, k, ignore_class=ignore, draws=DRAWS) for ignore in (False, True)
    )
    return BoxStability(classes, of_classes, of_class, anywhere)


@metric("pm_k_map")
class PmKMeanAP(Metric):
    """Mean average precision over the worst frame within k frames of each anchor."""

    task = "objects"
    cites = "shankar2021"
    function = staticmethod(pm_k_detection)
    has_intervals = True
    recorded = "objects"

    def label(self, options: MetricOptions) -> str:
        return f"pm-{options.k} mAP"

    def measure(self, truth: BoxSets, predictions: FrameBoxes, options: MetricOptions) -> Measured:
        return _MeasuredBoxes(truth, predictions, options)


class _MeasuredBoxes(Measured):
    """pm-k of the anchors that have detections, over the classes that the detector knows."""

    def __init__(self, truth: BoxSets, detected: FrameBoxes, options: MetricOptions) -> None:
        assert options.k is not None
        lacking = [frame for frame in truth.frames if frame not in detected.boxes]
        self._sets, self._detected = truth.without(lacking).only(detected.classes), detected
        self._matched = MatchedFrames.of(detected.boxes, self._sets.boxes, self._sets.sets, options.k)
        self._result = self._matched.result()
        super().__init__(self._result.pm_k, self._matched.videos)

    @property
    def more(self) -> dict[str, Any]:
        detected, sets = self._detected, self._sets
        anywhere = pm_k_detection(
            detected.boxes, sets.boxes, sets.sets, self._matched.k, ignore_class=True, draws=DRAWS
        )
        both = BoxStability(len(detected.classes), len(sets.classes), self._matched.result(DRAWS), anywhere)
        interval = both.detection.pm_k_interval and list(both.detection.pm_k_interval)
        return {"interval": interval, "objects": plain(both)}

    @property
    def by_class(self) -> dict[str, float]:
        classes = self._sets.classes
        return {classes[label]: worst for label, (_, worst) in self._result.per_class.items() if worst is not None}

    @property
    def by_video(self) -> Floats:
        alone = [self._matched.of_video(name).values() for name in self.videos]
        return np.array([np.mean(list(values)) if values else np.nan for values in alone])

    def drawn(self, weights: Weights) -> Draws:
        return self._matched.drawn(weights)
