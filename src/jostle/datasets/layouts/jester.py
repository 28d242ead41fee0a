"""Jester: hand gestures before a webcam, 27 classes, given out as folders of images.

`jester-v1-train.csv` and `jester-v1-validation.csv`, lines `34870;Drumming Fingers`; `jester-v1-labels.csv`, a class a
line, numbers them. A video is the folder `34870` of `00001.jpg` and so on, 12 images a second (`--fps 12`).
"""

from __future__ import annotations

from pathlib import Path

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts.clips import ClipsLayout, load
from jostle.errors import DataError
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source


def read_gestures(path: Path, subset: str) -> VideoLabels:
    """Read the class of each video from a list `id;class`."""
    labels = LabelList(path)
    for line, text in enumerate(Source(path).lines, 1):
        if not text.strip():
            continue
        video, _, label = (part.strip() for part in text.partition(";"))
        if not video or not label:
            raise DataError(f"{path}: line {line} is {text[:60]!r}, not 'id;class'; the test set has none", fault="F39")
        labels.add(video, [label])
    return labels.finish(are_paths=False)


LAYOUT = ClipsLayout(
    name="jester",
    title="Jester",
    patterns=("jester-v1-{s}.csv", "jester*{s}*.csv"),
    read=read_gestures,
    class_lists=("jester-v1-labels.csv", "jester*labels.csv"),
    by_folder=False,
    count=27,
    all_listed=False,
)


@dataset("jester", subsets=("training", "validation"), task="recognition", on_disk=True, usual="validation", classes=27)
def jester(request: Request) -> Dataset:
    """Jester: hand gestures before a webcam, 27 classes, as folders of images."""
    return load(request, LAYOUT)
