"""THUMOS14 and MultiTHUMOS, temporal action detection on the same videos.

THUMOS14 has 20 classes, 200 validation videos to train on and 213 test videos. Layouts, of which the first that exists
is used:

- `thumos14.json` as ActionFormer, TriDet and TemporalMaxer have it, or OpenTAD's `thumos_14_anno.json`;
- DETAD's `thumos14_test_extra_characteristics.json` and its twin for validation;
- any other ground truth named `thumos*.json` or `thumos*.csv`;
- the official text: a folder of `BaseballPitch_test.txt` and so on, with `Ambiguous_test.txt`.

The test set goes about in four variants; `Dataset.variant` says which one it is.

MultiTHUMOS has 65 classes, several at a time. Layouts:

- `multithumos.json`, whose classes are numbers; the official `class_list.txt` names them if it is there;
- the official text: a folder of `BaseballPitch.txt` and so on, a line `video start end` each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.classes import read_numbers
from jostle.datasets.layouts.segments import SegmentsLayout, load
from jostle.io.files.source import Source
from jostle.io.files.tabular import parse_number
from jostle.io.files.truth_table import TruthOptions, TruthTable

_CLASS_FILE = re.compile(r"[A-Z][A-Za-z]+_(test|val|validation)\.txt")
SPELLED = {"validation": ("validation", "val", "training"), "test": ("test", "testing")}


def is_thumos14_text(folder: Path) -> bool:
    """Return whether a folder holds a file for each class."""
    return any(_CLASS_FILE.fullmatch(name) for name in search.entries(folder))


THUMOS14 = SegmentsLayout(
    name="thumos14",
    title="THUMOS14",
    patterns=("thumos14.json", "thumos_14_anno.json", "thumos14*characteristics*.json", "thumos*.json", "thumos*.csv"),
    spelled=SPELLED,
    is_annotations=is_thumos14_text,
)


@dataset("thumos14", subsets=("validation", "test"), on_disk=True, classes=20)
def thumos14(request: Request) -> Dataset:
    """THUMOS14: actions in untrimmed sports videos, 20 classes; the validation videos are the ones to train on."""
    return load(request, THUMOS14)


_MULTITHUMOS_FILE = re.compile(r"[A-Z][A-Za-z]+\.txt")
_LINE = re.compile(r"video_(test|validation)_\d{7}\s+[\d.]+\s+[\d.]+\s*")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_SUBSETS = {"validation": "training", "test": "test"}
_LIST = "class_list.txt"


def is_multithumos_text(folder: Path) -> bool:
    """Return whether a folder holds a file for each class, of lines `video start end`."""
    return any(
        _LINE.fullmatch(Source(path).head.decode("utf-8", "replace").partition("\n")[0]) for path in _files(folder)[:1]
    )


def read_multithumos_text(folder: Path, subset_videos: TruthOptions) -> Truth:
    """Read the segments of all class files; the id of a video determines its subset."""
    table = TruthTable(folder, subset_videos)
    for path in _files(folder):
        for line, text in enumerate(Source(path).lines, 1):
            words = text.split()
            if not words:
                continue
            subset = _SUBSETS.get(words[0].split("_")[1] if "_" in words[0] else "", "")
            video = table.row_video(words[0], subset=subset)
            table.add(video, path.stem, [parse_number(word) for word in words[1:]], where=f"line {line} of {path.name}")
    return table.finish()


def _files(folder: Path) -> list[Path]:
    return [folder / name for name in search.entries(folder) if _MULTITHUMOS_FILE.fullmatch(name)]


def name_classes(truth: Truth, root: Path) -> Truth:
    """Replace class numbers by names, if the official list is in `root`."""
    lists = search.named(search.small_files(root), [_LIST])
    if truth.label_ids is None or not lists or not all(map(_NUMBER.fullmatch, truth.classes)):
        return truth
    names: Mapping[int, str] = read_numbers(lists[0])
    return replace(truth, classes=tuple(names.get(int(number), number) for number in truth.classes))


MULTITHUMOS = SegmentsLayout(
    name="multithumos",
    title="MultiTHUMOS",
    patterns=("multithumos.json", "multithumos*.json", "multithumos*.csv"),
    spelled={"training": ("training", "train", "validation", "val"), "test": ("test", "testing")},
    is_annotations=is_multithumos_text,
    read_folder=read_multithumos_text,
    finish=name_classes,
)


@dataset("multithumos", subsets=("training", "test"), on_disk=True, classes=65)
def multithumos(request: Request) -> Dataset:
    """MultiTHUMOS: the videos of THUMOS14 annotated with 65 classes that overlap in time."""
    return load(request, MULTITHUMOS)
