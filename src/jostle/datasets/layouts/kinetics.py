"""Kinetics-400 and its half, Mini Kinetics of 200 classes: clips of ten seconds from YouTube, one action each.

Layouts, of which the first that exists is used:

- the official CSV `label,youtube_id,time_start,time_end,split` (`kinetics-400_val.csv`, `val.csv`, `validate.csv`);
- a list `path number` of mmaction2, SlowFast or TimeSformer (`kinetics400_val_list_videos.txt`, `val.csv`), with a
  list of classes beside it;
- JSON with one class a video, as Mini Kinetics-C has it;
- no list at all: `val/<class>/<clip>.mp4`.

Clips are called `<YouTube id>_<start>_<end>` with six digits each, or by the id alone.
"""

from __future__ import annotations

import re
from dataclasses import replace

from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts.classes import shipped_names
from jostle.datasets.layouts.clips import ClipsLayout, load

_TIMES = re.compile(r"_\d{6}_\d{6}\Z", re.ASCII)
SUBSETS = ("training", "validation", "test")


def youtube_id(clip: str) -> str:
    """Return the id of the video that a clip was cut from.

    >>> youtube_id("-3B32lodo2M_000059_000069")
    '-3B32lodo2M'
    """
    return _TIMES.sub("", clip)


LAYOUT = ClipsLayout(
    name="kinetics400",
    title="Kinetics-400",
    patterns=(
        "kinetics*{s}*.csv",
        "k400*{s}*.csv",
        "{s}.csv",
        "kinetics*{s}*list*.txt",
        "k400*{s}*.txt",
        "{s}*list*.txt",
        "{s}.txt",
        "kinetics*{s}*.json",
    ),
    core=youtube_id,
    count=400,
)


MINI = replace(
    LAYOUT,
    name="mini-kinetics200",
    title="Mini Kinetics-200",
    patterns=("mini*kinetics*{s}*", *LAYOUT.patterns),
    classes=lambda: shipped_names("mini-kinetics-200.txt"),
)


@dataset("kinetics400", subsets=SUBSETS, task="recognition", on_disk=True, default_subset="validation", classes=400)
def kinetics400(request: Request) -> Dataset:
    """Kinetics-400: clips of ten seconds, one human action each, 400 classes in the order of the alphabet."""
    return load(request, LAYOUT)


@dataset(
    "mini-kinetics200", subsets=SUBSETS, task="recognition", on_disk=True, default_subset="validation", classes=200
)
def mini_kinetics200(request: Request) -> Dataset:
    """Mini Kinetics-200: the 200 classes of Kinetics-400 that Mini Kinetics-C is made of, picked from any copy."""
    return load(request, MINI)
