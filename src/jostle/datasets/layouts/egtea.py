"""EGTEA Gaze+: clips of cooking, cut to one action each; three official splits into training and test.

`train_split1.txt` and its kin have lines `OP01-R01-PastaSalad-1002316-1004005-F024051-F024101 1 1 1`: the clip, its
action, its verb and its nouns, counted from 1; `action_idx.txt`, lines `Inspect/Read recipe 1`, names the actions where
it is there. `training` and `test` are those of split 1, `training-2` and `test-2` those of split 2, and so on.
"""

from __future__ import annotations

import re
from pathlib import Path

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import tree
from jostle.datasets.layouts.clips import ClipsLayout, build_dataset
from jostle.datasets.layouts.matching import VideoIndex
from jostle.datasets.layouts.ucf101 import SUBSETS, part_and_split
from jostle.errors import DataError
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source

_LINE = re.compile(r"(\S+)\s+(\d{1,4})(\s+\d{1,4})+", re.ASCII)
_NAMED = re.compile(r"(\S.*?)\s+(\d{1,4})", re.ASCII)
_LAYOUT = ClipsLayout(name="egtea", title="EGTEA Gaze+", patterns=(), class_lists=(), by_folder=False, all_listed=False)


def read_split(path: Path, names: dict[int, str]) -> VideoLabels:
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
    matches = tree.named(files, ["action_idx.txt"])
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
    tree.check_root(request.root, _LAYOUT.title)
    part, split = part_and_split(request.subset)
    files = tree.small_files(request.root)
    name = f"{'train' if part == 'training' else part}_split{split}.txt"
    place = request.annotations or next(iter(tree.named(files, [name])), None)
    if place is None:
        raise tree.no_annotations(request.root, _LAYOUT.title, (name,))
    return build_dataset(request, _LAYOUT, VideoIndex(request.root), read_split(place, _actions(files)), place)
