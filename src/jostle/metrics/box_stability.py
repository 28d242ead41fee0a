"""pm-k of an object detector by both of the paper's measures: what is where, and only where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jostle.metrics.frame_sets import Sets
from jostle.metrics.pm_k_detection import PmKDetection, pm_k_detection
from jostle.types.boxes import Boxes

DRAWS = 1000  # of the videos, for the intervals


@dataclass(frozen=True)
class BoxStability:
    """Both measures of one detector.

    Attributes:
        classes: that the detector knows, and was measured on; `of_classes` has the data set.
        detection: a box counts if its class is right.
        localisation: all boxes are of one class.
    """

    classes: int
    of_classes: int
    detection: PmKDetection
    localisation: PmKDetection

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; which frame was chosen for each anchor can be computed again."""
        told: dict[str, Any] = {"classes": self.classes, "of_classes": self.of_classes}
        for name in ("detection", "localisation"):
            one = getattr(self, name).to_dict()
            del one["format"], one["chosen"]
            told[name] = one
        return told


def box_stability(
    found: Mapping[str, Boxes], truth: Mapping[str, Boxes], sets: Sets, k: int, *, classes: int, of_classes: int
) -> BoxStability:
    """Both measures, with intervals from drawing the videos.

    Args:
        found, truth: by frame, of the classes that the detector knows.
        sets: the neighbours of each anchor.
        classes, of_classes: how many it knows, and of how many.
    """
    of_class, anywhere = (
        pm_k_detection(found, truth, sets, k, ignore_class=ignore, draws=DRAWS) for ignore in (False, True)
    )
    return BoxStability(classes, of_classes, of_class, anywhere)
