"""EPIC-KITCHENS-100, action detection in kitchens seen through the cook's eyes: 97 verbs, 300 nouns.

`EPIC_100_train.csv` and `EPIC_100_validation.csv` as their authors give them out; beside them, where they are there,
`EPIC_100_verb_classes.csv` and `EPIC_100_noun_classes.csv` name the classes, and `EPIC_100_video_info.csv` has the rate
and length of each video. Videos are `P01_11.MP4`, or folders `P01_11` of `frame_0000000001.jpg`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import tree
from jostle.datasets.layouts.segments import SegmentsLayout, load
from jostle.errors import DataError
from jostle.io.files.format import formats
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows, require_number

SUBSETS = ("training", "validation")
Word = Literal["verb", "noun"]


def _finished(truth: Truth, root: Path, word: Word) -> Truth:
    files = tree.small_files(root)
    lists = tree.named(files, [f"epic_100_{word}_classes.csv", f"epic_100_{word}_classes*.csv"])
    if lists:
        names = {int(number): key for number, key in _columns(lists[0], "id", "key")}
        lacking = [name for name in truth.classes if int(name) not in names]
        if lacking:
            raise DataError(f"{lists[0]}: class {lacking[0]} is not in the list of {len(names)} {word}s", fault="F36")
        truth = replace(truth, classes=tuple(names[int(name)] for name in truth.classes))
    about = tree.named(files, ["epic_100_video_info.csv"])
    if about:
        rates = dict(_columns(about[0], "video_id", "fps"))
        known = [float(rates[video]) if video in rates else np.nan for video in truth.videos]
        truth = replace(truth, fps=np.array(known))
    return truth


def _columns(path: Path, first: str, second: str) -> list[tuple[str, str]]:
    source = Source(path)
    if not {first, second} <= set(source.header):
        raise DataError(f"{path}: line 1: no columns {first!r} and {second!r}; fetch it again", fault="F28")
    a, b = source.header.index(first), source.header.index(second)
    rows = [(line, fields[a].strip(), fields[b].strip()) for line, fields in read_csv_rows(source)]
    for line, key, value in rows:
        require_number(source, line, first if second == "key" else second, key if second == "key" else value)
    return [(key, value) for _, key, value in rows]


def _layout(word: Word) -> SegmentsLayout:
    return SegmentsLayout(
        name=f"epic-kitchens-{word}s",
        title="EPIC-KITCHENS-100",
        patterns=("epic_100_train.csv", "epic_100_validation.csv", "epic*100*.csv"),
        spelled={"training": ("training", "train"), "validation": ("validation", "valid", "val")},
        read_file=formats["epic-kitchens" if word == "verb" else "epic-kitchens-nouns"].read_truth,
        finish=partial(_finished, word=word),
    )


@dataset("epic-kitchens-verbs", subsets=SUBSETS, on_disk=True, usual="validation")
def epic_kitchens_verbs(request: Request) -> Dataset:
    """EPIC-KITCHENS-100 by the verbs of its actions, 97 classes, in long videos of kitchens."""
    return load(request, _layout("verb"))


@dataset("epic-kitchens-nouns", subsets=SUBSETS, on_disk=True, usual="validation")
def epic_kitchens_nouns(request: Request) -> Dataset:
    """EPIC-KITCHENS-100 by the nouns of its actions, 300 classes, in long videos of kitchens."""
    return load(request, _layout("noun"))
