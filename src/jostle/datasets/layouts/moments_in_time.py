"""Moments in Time: clips of three seconds of people, animals and things, one event each.

`trainingSet.csv` and `validationSet.csv`, lines `sleeping/yt-xyz_12.mp4,sleeping,3,0`: the file, its class, and how
many people agreed and did not; `moments_categories.txt`, lines `sleeping,204`, numbers the classes.
"""

from __future__ import annotations

import csv
from pathlib import Path

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.clips import ClipsLayout, build_dataset, find_list
from jostle.datasets.layouts.matching import VideoIndex
from jostle.errors import DataError
from jostle.io.files.label_list import LabelList
from jostle.io.files.source import Source

_CATEGORIES = "moments_categories.txt"


def read_moments(path: Path, subset: str) -> VideoLabels:
    """Read the class of each clip from a list `file,class,...`."""
    labels = LabelList(path)
    for line, fields in enumerate(csv.reader(Source(path).lines), 1):
        if not fields:
            continue
        if len(fields) < 2 or not fields[0].strip() or not fields[1].strip():
            raise DataError(f"{path}: line {line} is {','.join(fields)[:60]!r}, not 'file,class,...'", fault="F39")
        labels.add(fields[0].strip(), [fields[1].strip()])
    return labels.finish(are_paths=True)


def _categories(files: list[Path]) -> tuple[str, ...] | None:
    matches = search.named(files, [_CATEGORIES])
    if not matches:
        return None
    numbers: dict[int, str] = {}
    for line, text in enumerate(Source(matches[0]).lines, 1):
        name, _, number = text.strip().rpartition(",")
        if not text.strip():
            continue
        if not name or not (number.isascii() and number.isdigit()) or int(number) in numbers:
            raise DataError(f"{matches[0]}: line {line} is {text[:60]!r}, not 'class,number', each once", fault="F36")
        numbers[int(number)] = name
    if sorted(numbers) != list(range(len(numbers))):
        raise DataError(f"{matches[0]}: numbers of classes do not go from 0 to {len(numbers) - 1}", fault="F36")
    return tuple(numbers[number] for number in range(len(numbers)))


LAYOUT = ClipsLayout(
    name="moments-in-time",
    title="Moments in Time",
    patterns=("{s}set.csv", "moments*{s}*.csv"),
    read=read_moments,
    class_lists=(),
    by_folder=False,
    all_listed=False,
)


@dataset(
    "moments-in-time", subsets=("training", "validation"), task="recognition", on_disk=True, default_subset="validation"
)
def moments_in_time(request: Request) -> Dataset:
    """Moments in Time: clips of three seconds, one event each, about 300 classes."""
    search.check_root(request.root, LAYOUT.title)
    files = search.small_files(request.root)
    place = request.annotations or find_list(files, LAYOUT, request.subset)
    if place is None:
        raise search.no_annotations(request.root, LAYOUT.title, (f"{request.subset}Set.csv",))
    labels = read_moments(place, request.subset)
    return build_dataset(request, LAYOUT, VideoIndex(request.root), labels, place, names=_categories(files))
