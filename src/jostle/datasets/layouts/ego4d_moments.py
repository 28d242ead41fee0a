"""Ego4D Moments Queries: moments of daily life in clips of eight minutes, seen through the wearer's eyes.

`moments_train.json` and `moments_val.json`; clips are `<clip_uid>.mp4`.
"""

from __future__ import annotations

from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts.segments import SegmentsLayout, load

LAYOUT = SegmentsLayout(
    name="ego4d-moments",
    title="Ego4D Moments Queries",
    patterns=("moments_train.json", "moments_val.json", "moments_*.json", "ego4d*moments*.json"),
    spelled={"training": ("training", "train"), "validation": ("validation", "valid", "val")},
)


@dataset("ego4d-moments", subsets=("training", "validation"), on_disk=True, usual="validation")
def ego4d_moments(request: Request) -> Dataset:
    """Ego4D Moments Queries: 110 classes of moments, the primary labels."""
    return load(request, LAYOUT)
