"""ActivityNet 1.3, temporal action detection: 200 classes, about 10,000 training and 5,000 validation videos.

Layouts:

- `activity_net.v1-3.min.json` as its authors give it out (a thinned copy of it works as well);
- TSP's `activitynet_v1-3_valid_*.csv` and `..._train_*.csv`, recognised by their columns;
- BMN's `activitynet_annotations/anet_anno_action.json`, which has no subsets: `video_info_new.csv` beside it has.

Videos are called `v_<id>` or by the id alone, whichever way the annotations spell it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.segments import SegmentsLayout, load
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows

_ID = 11  # characters of an id of YouTube


def bare_id(video_id: str) -> str:
    """Return the id without the `v_` prefix of file names; an id may itself begin so.

    >>> bare_id("v_QOlSCBRmfWY"), bare_id("v_QOlSCBRmf")
    ('QOlSCBRmfWY', 'v_QOlSCBRmf')
    """
    return video_id[2:] if video_id.startswith("v_") and len(video_id) == _ID + 2 else video_id


def subsets_of_bmn(root: Path) -> Mapping[str, str]:
    """Return the subset of each video from BMN's list, if it exists."""
    for path in search.named(search.small_files(root), ["video_info*.csv"]):
        source = Source(path)
        if {"video", "subset"} <= set(source.header):
            video, subset = source.header.index("video"), source.header.index("subset")
            return {bare_id(fields[video]): fields[subset] for _, fields in read_csv_rows(source)}
    return {}


LAYOUT = SegmentsLayout(
    name="activitynet",
    title="ActivityNet 1.3",
    patterns=(
        "activity_net.v1-3.min.json",
        "activity_net*.json",
        "activitynet*.json",
        "anet*.json",
        "activity*net*.csv",
        "anet*.csv",
    ),
    spelled={"training": ("training", "train"), "validation": ("validation", "valid", "val")},
    core=bare_id,
    subset_of=subsets_of_bmn,
)


@dataset("activitynet", subsets=("training", "validation"), on_disk=True, default_subset="validation", classes=200)
def activitynet(request: Request) -> Dataset:
    """ActivityNet 1.3: actions of daily life in untrimmed videos, 200 classes."""
    return load(request, LAYOUT)


SUBSETS = ("training", "validation")
_SPELLED = {"training": ("training", "train"), "validation": ("validation", "valid", "val")}

HACS = SegmentsLayout(
    name="hacs",
    title="HACS Segments",
    patterns=("hacs_segments_v1.1.1.json", "hacs_segments*.json", "hacs*.json"),
    spelled=_SPELLED,
    core=bare_id,
)
FINEACTION = SegmentsLayout(
    name="fineaction", title="FineAction", patterns=("annotations_gt.json", "fineaction*.json"), spelled=_SPELLED
)


@dataset("hacs", subsets=SUBSETS, on_disk=True, default_subset="validation", classes=200)
def hacs(request: Request) -> Dataset:
    """HACS Segments: the 200 classes of ActivityNet in many more videos."""
    return load(request, HACS)


@dataset("fineaction", subsets=SUBSETS, on_disk=True, default_subset="validation")
def fineaction(request: Request) -> Dataset:
    """FineAction: 106 fine-grained classes of actions in untrimmed videos."""
    return load(request, FINEACTION)
