"""HACS Segments and FineAction: large sets for temporal action detection, both in ActivityNet's JSON.

- HACS: `HACS_segments_v1.1.1.json`, subsets training, validation and testing; videos `v_<id>.mp4` or `<id>.mp4`.
- FineAction: `annotations_gt.json`; videos `v_00000001.mp4`.
"""

from __future__ import annotations

from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts.activitynet import bare_id
from jostle.datasets.layouts.segments import Segments, load

SUBSETS = ("training", "validation")
_SPELLED = {"training": ("training", "train"), "validation": ("validation", "valid", "val")}

HACS = Segments(
    name="hacs",
    title="HACS Segments",
    patterns=("hacs_segments_v1.1.1.json", "hacs_segments*.json", "hacs*.json"),
    spelled=_SPELLED,
    core=bare_id,
)
FINEACTION = Segments(
    name="fineaction",
    title="FineAction",
    patterns=("annotations_gt.json", "fineaction*.json"),
    spelled=_SPELLED,
)


@dataset("hacs", subsets=SUBSETS, on_disk=True, usual="validation", classes=200)
def hacs(request: Request) -> Dataset:
    """HACS Segments: the 200 classes of ActivityNet in many more videos."""
    return load(request, HACS)


@dataset("fineaction", subsets=SUBSETS, on_disk=True, usual="validation")
def fineaction(request: Request) -> Dataset:
    """FineAction: 106 finely told classes of actions in untrimmed videos."""
    return load(request, FINEACTION)
