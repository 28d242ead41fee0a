"""Options of scores: the rules of public evaluators, and which frames are held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jostle.core.options import option


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreOptions:
    """Detections"""

    protocol: str = field(
        default="activitynet",
        metadata=option("Protocol: activitynet, thumos14, thumos14-official or opentad.", metavar="P"),
    )
    tious: Sequence[float] | None = field(
        default=None, metadata=option("Thresholds of tIoU.", flag="--tiou", metavar="0.5,...", separator=",")
    )
    bootstrap: int = field(
        default=0,
        metadata=option(
            "Number of bootstrap draws over videos; 0: no interval.", flag="--bootstrap", metavar="N", least=0
        ),
    )
    strict: bool = field(default=False, metadata=option("Refuse predictions of classes that the ground truth lacks."))


@dataclass(frozen=True, kw_only=True, eq=False)
class StabilityOptions:
    """Similar frames"""

    sets: Path | None = field(
        default=None,
        metadata=option(
            "JSON file with the similar frames of each anchor, for pm-k of a frame classifier or an object detector.",
            metavar="pmsets.json",
        ),
    )
    labels: Path | None = field(
        default=None, metadata=option("Classes of each frame, for a classifier.", metavar="labels.json")
    )
    boxes: Path | None = field(
        default=None, metadata=option("True boxes of each frame, for a detector.", metavar="boxes.json")
    )
    frames: Path | None = field(
        default=None,
        metadata=option("Frames that PRED refers to: COCO annotations, or VID's list.", metavar="FILE"),
    )
    k: int = field(default=10, metadata=option("Number of frames on each side of an anchor.", flag="-k", least=0))
    project: Literal["imagenet-vid", "ytbb"] | None = field(
        default=None, metadata=option("Merge scores of the 1000 ImageNet classes into those of the set.")
    )
    labels_of: Literal["own", "anchor"] = field(
        default="own", metadata=option("Labels that neighbours are compared with.")
    )
