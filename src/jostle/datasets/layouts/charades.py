"""Charades, dense action detection at home: 157 classes, about seven actions in half a minute.

`Charades_v1_train.csv` and `Charades_v1_test.csv`; `Charades_v1_classes.txt`, lines `c000 Holding some clothes`, names
the classes where it is there. Videos are `<id>.mp4`, or folders of images `<id>-000001.jpg` as their authors give out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.segments import SegmentsLayout, load
from jostle.errors import DataError
from jostle.io.files.source import Source

_LINE = re.compile(r"(c\d{1,4}) (\S.*)", re.ASCII)


def name_classes(truth: Truth, root: Path) -> Truth:
    """Replace `c000` and so on by names, if the official list is in `root`."""
    lists = search.named(search.small_files(root), ["charades*classes.txt"])
    if not lists:
        return truth
    names = {}
    for line, text in enumerate(Source(lists[0]).lines, 1):
        matches = _LINE.fullmatch(text.strip())
        if matches is None:
            raise DataError(f"{lists[0]}: line {line} is {text[:60]!r}, not 'c000 name'", fault="F39")
        names[matches[1]] = matches[2]
    lacking = [code for code in truth.classes if code not in names]
    if lacking:
        raise DataError(f"{lists[0]}: class {lacking[0]} is not in the list of {len(names)}", fault="F36")
    return replace(truth, classes=tuple(names[code] for code in truth.classes))


LAYOUT = SegmentsLayout(
    name="charades",
    title="Charades",
    patterns=("charades_v1_train.csv", "charades_v1_test.csv", "charades*.csv"),
    spelled={"training": ("training", "train"), "test": ("test", "testing")},
    finish=name_classes,
)


@dataset("charades", subsets=("training", "test"), on_disk=True, classes=157)
def charades(request: Request) -> Dataset:
    """Charades: daily indoors activities played at home, 157 classes that overlap in time."""
    return load(request, LAYOUT)
