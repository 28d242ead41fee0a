"""Data sets of Twenty Billion Neurons: Something-Something v2, its half of 87 classes, and Jester.

Layouts of Something-Something v2, hands acting on objects, where order matters:

- the official JSON `something-something-v2-validation.json` (also `labels/validation.json`), a list of
  `{"id", "template"}`, with `something-something-v2-labels.json` to number the classes;
- a list `path number` of mmaction2, SlowFast or TimeSformer (`sthv2_val_list_videos.txt`, `val.csv`), also of image
  folders, with a list of classes beside it;
- JSON with one class a video, as Mini SSv2-C has it.

Videos are called by their number, `74225.webm`, all subsets in one folder.

Layout of Jester, 27 hand gestures before a webcam, given out as folders of images: `jester-v1-train.csv` and
`jester-v1-validation.csv`, lines `34870;Drumming Fingers`; `jester-v1-labels.csv`, a class a line, numbers them. A
video is the folder `34870` of `00001.jpg` and so on, 12 images a second (`--fps 12`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jostle.core.formatting import describe
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts.classes import shipped_names
from jostle.datasets.layouts.clips import ClipsLayout, load, read_clips
from jostle.errors import DataError
from jostle.io.files.format import formats
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source
from jostle.io.files.text import parse_json, read_text

SUBSETS = ("training", "validation")
_WORDS_OF_VIDEO = 2  # in a line of a list of videos; a list of image folders has three


def read_ssv2(path: Path, subset: str) -> VideoLabels:
    """Read the official JSON, or any other list of labels."""
    source = Source(path)
    if source.words and all(word.isdigit() for word in source.words):  # videos are numbers here, and nowhere else
        listed = formats["video-list" if len(source.words) == _WORDS_OF_VIDEO else "frames-list"].read_labels
        assert listed is not None
        return listed(source, None)
    if not source.is_json or not source.head.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"["):
        return read_clips(path, subset)
    # The reader of JSON takes objects only, so that the list is handed to it inside one.
    entries = parse_json(f'{{"list": {read_text(path)}}}', path)["list"]
    labels = LabelList(path)
    for place, entry in enumerate(entries):
        video, template = (entry.get("id"), entry.get("template")) if isinstance(entry, dict) else (None, None)
        if not isinstance(video, str | int) or not isinstance(template, str):
            raise DataError(
                f"{path}: entry {place} is {describe(entry)}, without 'id' and 'template'; the test set has no labels",
                fault="F28",
            )
        labels.add(str(video), [template.replace("[", "").replace("]", "")])
    return labels.finish(are_paths=False)


SSV2 = ClipsLayout(
    name="ssv2",
    title="Something-Something v2",
    patterns=(
        "something-something-v2-{s}.json",
        "{s}.json",
        "s*thv2*{s}*list*.txt",
        "ss*v2*{s}*.txt",
        "{s}.txt",
        "ss*v2*{s}*.csv",
        "{s}.csv",
        "*ss*v2*{s}*.json",
    ),
    read=read_ssv2,
    class_lists=(
        "something-something-v2-labels.json",
        "labels.json",
        "*classnames.json",
        "class*.txt",
        "*label_map*.txt",
    ),
    by_folder=False,
    count=174,
    all_listed=False,
)

MINI_SSV2 = replace(
    SSV2,
    name="mini-ssv2",
    title="Mini Something-Something v2",
    patterns=("mini*ss*v2*{s}*", *SSV2.patterns),
    classes=lambda: shipped_names("mini-ssv2-87.txt"),
)


@dataset("ssv2", subsets=SUBSETS, task="recognition", on_disk=True, default_subset="validation", classes=174)
def ssv2(request: Request) -> Dataset:
    """Something-Something v2: short clips of hands doing things to objects, 174 classes."""
    return load(request, SSV2)


@dataset("mini-ssv2", subsets=SUBSETS, task="recognition", on_disk=True, default_subset="validation")
def mini_ssv2(request: Request) -> Dataset:
    """Mini SSv2: the 87 classes of Something-Something v2 that Mini SSv2-C is made of, picked from any copy."""
    return load(request, MINI_SSV2)


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


JESTER = ClipsLayout(
    name="jester",
    title="Jester",
    patterns=("jester-v1-{s}.csv", "jester*{s}*.csv"),
    read=read_gestures,
    class_lists=("jester-v1-labels.csv", "jester*labels.csv"),
    by_folder=False,
    count=27,
    all_listed=False,
)


@dataset(
    "jester",
    subsets=("training", "validation"),
    task="recognition",
    on_disk=True,
    default_subset="validation",
    classes=27,
)
def jester(request: Request) -> Dataset:
    """Jester: hand gestures before a webcam, 27 classes, as folders of images."""
    return load(request, JESTER)
