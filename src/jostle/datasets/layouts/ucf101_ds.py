"""UCF101-DS: videos of UCF101's classes as they are met elsewhere, in other styles, viewpoints, light and scenes.

`ucf101-DS_eval.csv` has the columns `filename` and `label`, and further ones; a video lies at `<label>/<filename>`.
Without it the folders are the classes. Some are spelled otherwise than in UCF101, whose names and numbers count:
a model of UCF101 is tested as it is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import tree
from jostle.datasets.layouts.classes import class_key, shipped_names
from jostle.datasets.layouts.clips import ClipsLayout, build_dataset, from_folders
from jostle.datasets.layouts.matching import VideoIndex
from jostle.errors import DataError
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.tabular import read_csv_rows

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
    tree.check_root(request.root, _LAYOUT.title)
    place = request.annotations or tree.only_one(
        tree.named(tree.small_files(request.root), _LAYOUT.patterns), _LAYOUT.title
    )
    videos = VideoIndex(request.root)
    labels = read_eval(place) if place else from_folders(videos, "test")
    if labels is None:
        raise tree.no_annotations(request.root, _LAYOUT.title, (*_LAYOUT.patterns, "folders named after classes"))
    return build_dataset(request, _LAYOUT, videos, as_ucf101(labels), place, names=shipped_names("ucf101.txt"))
