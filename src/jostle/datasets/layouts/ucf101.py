"""UCF101, HMDB51 and UCF101-DS: trimmed clips in a folder a class.

Layouts of UCF101: `ucfTrainTestlist/testlist01.txt` and its variants; mmaction2's `ucf101_val_split_1_videos.txt` with
`classInd.txt` beside it; no list at all, where the group in a name, `_g05_`, gives the split: groups 1 to 7 are the
test set of the first, 8 to 14 of the second, 15 to 21 of the third.

Layouts of HMDB51: the official folder of `<class>_test_split1.txt`; mmaction2's `hmdb51_val_split_1_videos.txt`.

Both have three official splits: `training` and `test` are those of split 1, `training-2` and `test-2` those of split 2,
and so on.

UCF101-DS, videos of UCF101's classes in other styles, viewpoints, light and scenes: `ucf101-DS_eval.csv` has the
columns `filename` and `label`, and further ones; a video lies at `<label>/<filename>`. Without it the folders are the
classes. Some are spelled otherwise than in UCF101, whose names and numbers count: a model of UCF101 is tested as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.classes import class_key, shipped_names
from jostle.datasets.layouts.clips import ClipsLayout, build_dataset, from_folders
from jostle.datasets.layouts.matching import VideoIndex
from jostle.errors import DataError
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows

SUBSETS = ("training", "test", "training-2", "test-2", "training-3", "test-3")
_UCF_CLIPS = dict(zip(SUBSETS, (9537, 3783, 9586, 3734, 9624, 3696), strict=True))
_HMDB_CLIPS = dict(zip(SUBSETS, (3570, 1530) * 3, strict=True))
_UCF_CLIP = re.compile(r"v_(\w+)_g(\d{2})_c\d{2}", re.ASCII)
_GROUPS = 7  # in the test set of a split
_HMDB_FILE = re.compile(r"(\w+)_test_split([123])\.txt")
_HMDB_MARK = {"1": "training", "2": "test", "0": ""}


def part_and_split(subset: str) -> tuple[str, int]:
    """Return `training` or `test`, and the number of the split.

    >>> part_and_split("test"), part_and_split("training-3")
    (('test', 1), ('training', 3))
    """
    part, _, number = subset.partition("-")
    return part, int(number or 1)


def _listed(root: Path, layout: ClipsLayout) -> Path | None:
    return next(iter(search.named(search.small_files(root), layout.patterns)), None)


def _layout(name: str, title: str, subset: str, *official: str) -> ClipsLayout:
    part, split = part_and_split(subset)
    word = {"training": "train", "test": "val"}[part]  # mmaction2's
    return ClipsLayout(
        name=name,
        title=title,
        patterns=(*official, *(f"{name}_{w}_split_{split}_*.txt" for w in dict.fromkeys((word, part)))),
        by_folder=False,
        count=int("".join(c for c in name if c.isdigit())),
    )


@dataset("ucf101", subsets=SUBSETS, task="recognition", on_disk=True, videos=_UCF_CLIPS, classes=101)
def ucf101(request: Request) -> Dataset:
    """UCF101: short clips of 101 actions; `test` is the test set of split 1."""
    part, split = part_and_split(request.subset)
    list_name = f"{'train' if part == 'training' else 'test'}list0{split}.txt"
    layout = _layout("ucf101", "UCF101", request.subset, list_name)
    search.check_root(request.root, layout.title)
    place = request.annotations or _listed(request.root, layout)
    videos = VideoIndex(request.root)
    labels = layout.read(place, part) if place else _by_group(videos, part, split)
    if labels is None:
        raise search.no_annotations(request.root, layout.title, (*layout.patterns, "v_<Class>_g01_c01.avi"))
    return build_dataset(
        request, layout, videos, labels, place, [name for name in videos.by_id if _UCF_CLIP.fullmatch(name)]
    )


def _by_group(videos: VideoIndex, part: str, split: int) -> VideoLabels | None:
    tested = range((split - 1) * _GROUPS + 1, split * _GROUPS + 1)
    labels, count = LabelList(videos.root), 0
    for video in sorted(videos.by_id):
        match = _UCF_CLIP.fullmatch(video)
        if match and (int(match[2]) in tested) == (part == "test"):
            labels.add(video, [match[1]])
            count += 1
    return labels.finish(are_paths=False) if count else None


@dataset("hmdb51", subsets=SUBSETS, task="recognition", on_disk=True, videos=_HMDB_CLIPS, classes=51)
def hmdb51(request: Request) -> Dataset:
    """HMDB51: short clips of 51 actions, many from films; `test` is the test set of split 1."""
    part, split = part_and_split(request.subset)
    layout = _layout("hmdb51", "HMDB51", request.subset)
    search.check_root(request.root, layout.title)
    annotations = request.annotations
    files = (
        search.small_files(request.root)
        if annotations is None
        else sorted(annotations.iterdir())
        if annotations.is_dir()
        else []
    )
    official = [file for file in files if (splits := _HMDB_FILE.fullmatch(file.name)) and int(splits[2]) == split]
    if official:
        labels, others = _hmdb_splits(official, part)
        return build_dataset(request, layout, VideoIndex(request.root), labels, official[0].parent, others)
    place = annotations or _listed(request.root, layout)
    if place is None:
        raise search.no_annotations(request.root, layout.title, (f"<class>_test_split{split}.txt", *layout.patterns))
    # A list of one part names nothing of the others, which lie in the same folders.
    return build_dataset(
        request, replace(layout, all_listed=False), VideoIndex(request.root), layout.read(place, part), place
    )


def _hmdb_splits(files: Sequence[Path], part: str) -> tuple[VideoLabels, list[str]]:
    """Read the clips of one part, and the ids of all others; the file name is the class."""
    labels, others = LabelList(files[0].parent), []
    for file in sorted(files):
        lists = _HMDB_FILE.fullmatch(file.name)
        assert lists is not None
        for line, text in enumerate(Source(file).lines, 1):
            name, _, mark = text.strip().rpartition(" ")
            if not text.strip():
                continue
            if not name or mark not in _HMDB_MARK:
                raise DataError(f"{file}: line {line} is {text[:60]!r}, not 'clip.avi' and 0, 1 or 2", fault="F39")
            if _HMDB_MARK[mark] == part:
                labels.add(f"{lists[1]}/{name.strip()}", [lists[1]])
            else:
                others.append(Path(name.strip()).stem)
    return labels.finish(are_paths=True), others


_CALLED = {"billiardsshot": "Billiards", "basketballshooting": "Basketball"}  # here, and there
_LAYOUT = ClipsLayout(
    name="ucf101-ds", title="UCF101-DS", patterns=("ucf101-ds*.csv",), class_lists=(), all_listed=False
)


def read_eval(path: Path) -> VideoLabels:
    """Read the class of each video from the table of the authors."""
    source = Source(path)
    if not {"filename", "label"} <= set(source.header):
        raise DataError(f"{path}: line 1: no columns 'filename' and 'label'; fetch it again", fault="F28")
    file, label = source.header.index("filename"), source.header.index("label")
    labels = LabelList(path)
    for line, fields in read_csv_rows(source):
        if not fields[file].strip() or not fields[label].strip():
            raise DataError(f"{path}: line {line} names no file or no class; fill it in", fault="F45")
        labels.add(f"{fields[label].strip()}/{fields[file].strip()}", [fields[label].strip()])
    return labels.finish(are_paths=True)


def as_ucf101(labels: VideoLabels) -> VideoLabels:
    """Spell classes as in UCF101; two spellings of one class become one."""
    named = [_CALLED.get(class_key(name), name) for name in labels.classes]
    order = list(dict.fromkeys(named))
    places = np.array([order.index(name) for name in named], np.int32)
    return replace(labels, classes=tuple(order), label=places[labels.label])


@dataset("ucf101-ds", subsets=("test",), task="recognition", on_disk=True)
def ucf101_ds(request: Request) -> Dataset:
    """UCF101-DS: videos of UCF101's classes under natural shifts of style, viewpoint, light and scene."""
    search.check_root(request.root, _LAYOUT.title)
    place = request.annotations or search.only_one(
        search.named(search.small_files(request.root), _LAYOUT.patterns), _LAYOUT.title
    )
    videos = VideoIndex(request.root)
    labels = read_eval(place) if place else from_folders(videos, "test")
    if labels is None:
        raise search.no_annotations(request.root, _LAYOUT.title, (*_LAYOUT.patterns, "folders named after classes"))
    return build_dataset(request, _LAYOUT, videos, as_ucf101(labels), place, names=shipped_names("ucf101.txt"))
