"""THUMOS14, temporal action detection: 20 classes, 200 validation videos to train on, 213 test videos.

Layouts, of which the first that exists is used:

- `thumos14.json` as ActionFormer, TriDet and TemporalMaxer have it, or OpenTAD's `thumos_14_anno.json`;
- DETAD's `thumos14_test_extra_characteristics.json` and its twin for validation;
- any other ground truth named `thumos*.json` or `thumos*.csv`;
- the official text: a folder of `BaseballPitch_test.txt` and so on, with `Ambiguous_test.txt`.

The test set goes about in four variants; `Dataset.variant` says which one it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import tree
from jostle.datasets.layouts.segments import SegmentsLayout, load

_CLASS_FILE = re.compile(r"[A-Z][A-Za-z]+_(test|val|validation)\.txt")
SPELLED = {"validation": ("validation", "val", "training"), "test": ("test", "testing")}


def is_official_text(folder: Path) -> bool:
    """Return whether a folder holds a file for each class."""
    return any(_CLASS_FILE.fullmatch(name) for name in tree.entries(folder))


LAYOUT = SegmentsLayout(
    name="thumos14",
    title="THUMOS14",
    patterns=(
        "thumos14.json",
        "thumos_14_anno.json",
        "thumos14*characteristics*.json",
        "thumos*.json",
        "thumos*.csv",
    ),
    spelled=SPELLED,
    is_annotations=is_official_text,
)


@dataset("thumos14", subsets=("validation", "test"), on_disk=True, classes=20)
def thumos14(request: Request) -> Dataset:
    """THUMOS14: actions in untrimmed sports videos, 20 classes; the validation videos are the ones to train on."""
    return load(request, LAYOUT)
