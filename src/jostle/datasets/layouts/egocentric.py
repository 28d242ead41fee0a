"""Egocentric data sets, seen through the eyes of the wearer: EPIC-KITCHENS-100, Ego4D Moments Queries, EGTEA Gaze+.

EPIC-KITCHENS-100, action detection in kitchens, 97 verbs and 300 nouns: `EPIC_100_train.csv` and
`EPIC_100_validation.csv` as their authors give them out; beside them, where they are there, `EPIC_100_verb_classes.csv`
and `EPIC_100_noun_classes.csv` name the classes, and `EPIC_100_video_info.csv` has the rate and length of each video.
Videos are `P01_11.MP4`, or folders `P01_11` of `frame_0000000001.jpg`.

Ego4D Moments Queries, moments of daily life in clips of eight minutes: `moments_train.json` and `moments_val.json`;
clips are `<clip_uid>.mp4`.

EGTEA Gaze+, clips of cooking cut to one action each, with three official splits into training and test:
`train_split1.txt` and the like have lines `OP01-R01-PastaSalad-1002316-1004005-F024051-F024101 1 1 1`: the clip, its
action, its verb and its nouns, counted from 1; `action_idx.txt`, lines `Inspect/Read recipe 1`, names the actions where
it is there. `training` and `test` are those of split 1, `training-2` and `test-2` those of split 2, and so on.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.clips import ClipsLayout, build_dataset
from jostle.datasets.layouts.matching import VideoIndex
from jostle.datasets.layouts.segments import SegmentsLayout, load
from jostle.datasets.layouts.ucf101 import SUBSETS, part_and_split
from jostle.errors import DataError
from jostle.io.files.format import formats
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows, require_number

_EPIC_SUBSETS = ("training", "validation")
Word = Literal["verb", "noun"]


def _name_epic_classes(truth: Truth, root: Path, word: Word) -> Truth:
    files = search.small_files(root)
    lists = search.named(files, [f"epic_100_{word}_classes.csv", f"epic_100_{word}_classes*.csv"])
    if lists:
        names = {int(number): key for number, key in _columns(lists[0], "id", "key")}
        lacking = [name for name in truth.classes if int(name) not in names]
        if lacking:
            raise DataError(f"{lists[0]}: class {lacking[0]} is not in the list of {len(names)} {word}s", fault="F36")
        truth = replace(truth, classes=tuple(names[int(name)] for name in truth.classes))
    about = search.named(files, ["epic_100_video_info.csv"])
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


def _epic_layout(word: Word) -> SegmentsLayout:
    return SegmentsLayout(
        name=f"epic-kitchens-{word}s",
        title="EPIC-KITCHENS-100",
        patterns=("epic_100_train.csv", "epic_100_validation.csv", "epic*100*.csv"),
        spelled={"training": ("training", "train"), "validation": ("validation", "valid", "val")},
        read_file=formats["epic-kitchens" if word == "verb" else "epic-kitchens-nouns"].read_truth,
        finish=partial(_name_epic_classes, word=word),
    )


@dataset("epic-kitchens-verbs", subsets=_EPIC_SUBSETS, on_disk=True, default_subset="validation")
def epic_kitchens_verbs(request: Request) -> Dataset:
    """EPIC-KITCHENS-100 by the verbs of its actions, 97 classes, in long videos of kitchens."""
    return load(request, _epic_layout("verb"))


@dataset("epic-kitchens-nouns", subsets=_EPIC_SUBSETS, on_disk=True, default_subset="validation")
def epic_kitchens_nouns(request: Request) -> Dataset:
    """EPIC-KITCHENS-100 by the nouns of its actions, 300 classes, in long videos of kitchens."""
    return load(request, _epic_layout("noun"))


EGO4D = SegmentsLayout(
    name="ego4d-moments",
    title="Ego4D Moments Queries",
    patterns=("moments_train.json", "moments_val.json", "moments_*.json", "ego4d*moments*.json"),
    spelled={"training": ("training", "train"), "validation": ("validation", "valid", "val")},
)


@dataset("ego4d-moments", subsets=("training", "validation"), on_disk=True, default_subset="validation")
def ego4d_moments(request: Request) -> Dataset:
    """Ego4D Moments Queries: 110 classes of moments, the primary labels."""
    return load(request, EGO4D)


_LINE = re.compile(r"(\S+)\s+(\d{1,4})(\s+\d{1,4})+", re.ASCII)
_NAMED = re.compile(r"(\S.*?)\s+(\d{1,4})", re.ASCII)
_EGTEA = ClipsLayout(name="egtea", title="EGTEA Gaze+", patterns=(), class_lists=(), by_folder=False, all_listed=False)


def read_egtea_split(path: Path, names: dict[int, str]) -> VideoLabels:
    """Read the clips of a split and their actions, by name if the names are known."""
    labels = LabelList(path, numbered=not names)
    for line, text in enumerate(Source(path).lines, 1):
        if not text.strip():
            continue
        match = _LINE.fullmatch(text.strip())
        if match is None or int(match[2]) < 1:
            raise DataError(f"{path}: line {line} is {text[:60]!r}, not a clip and numbers of its action", fault="F39")
        number = int(match[2])
        if names and number not in names:
            raise DataError(f"{path}: line {line}: action {number} is not in the list of {len(names)}", fault="F36")
        labels.add(match[1], [names[number] if names else str(number - 1)])
    return labels.finish(are_paths=False)


def _actions(files: list[Path]) -> dict[int, str]:
    matches = search.named(files, ["action_idx.txt"])
    names = {}
    for line, text in enumerate(Source(matches[0]).lines if matches else [], 1):
        match = _NAMED.fullmatch(text.strip())
        if match is None:
            raise DataError(f"{matches[0]}: line {line} is {text[:60]!r}, not an action and its number", fault="F39")
        names[int(match[2])] = match[1]
    return names


@dataset("egtea", subsets=SUBSETS, task="recognition", on_disk=True)
def egtea(request: Request) -> Dataset:
    """EGTEA Gaze+: clips of 106 actions in a kitchen, seen through the cook's eyes; `test` is that of split 1."""
    search.check_root(request.root, _EGTEA.title)
    part, split = part_and_split(request.subset)
    files = search.small_files(request.root)
    name = f"{'train' if part == 'training' else part}_split{split}.txt"
    place = request.annotations or next(iter(search.named(files, [name])), None)
    if place is None:
        raise search.no_annotations(request.root, _EGTEA.title, (name,))
    return build_dataset(request, _EGTEA, VideoIndex(request.root), read_egtea_split(place, _actions(files)), place)
