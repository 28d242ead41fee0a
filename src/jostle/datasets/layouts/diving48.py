"""Diving48: competitive dives of 48 classes that differ only in the order of movements.

`Diving48_V2_train.json` and `Diving48_V2_test.json`, lists of `{"vid_name", "label", "start_frame", "end_frame"}`;
`Diving48_vocab.json`, a list in the order of the classes, names them where it is there. Dives are `<vid_name>.mp4`, or
folders of images. Frames of each are counted from 0 in its own file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jostle.core.formatting import describe
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.clips import ClipsLayout, load
from jostle.errors import DataError
from jostle.io.files.label_list import LabelList
from jostle.io.files.text import parse_json, read_text

_VOCABULARY = "diving48_vocab.json"
_MOST = 1000


def _list(path: Path) -> list[Any]:
    # The reader of JSON takes objects only, so that the list is handed to it inside one.
    files = parse_json(f'{{"list": {read_text(path)}}}', path)["list"]
    if not isinstance(files, list):
        raise DataError(f"{path}: holds {describe(files)}, not a list", fault="F28")
    return files


def read_dives(path: Path, subset: str) -> VideoLabels:
    """Read the class of each dive; names come from the vocabulary beside the list."""
    vocabulary = search.named(search.small_files(path.parent, 0), [_VOCABULARY])
    names = (
        ["-".join(entry) if isinstance(entry, list) else str(entry) for entry in _list(vocabulary[0])]
        if (vocabulary)
        else []
    )
    labels = LabelList(path, numbered=not names)
    for place, entry in enumerate(_list(path)):
        video, label = (entry.get("vid_name"), entry.get("label")) if isinstance(entry, dict) else (None, None)
        if not isinstance(video, str) or type(label) is not int or not 0 <= label < (len(names) or _MOST):
            raise DataError(
                f"{path}: entry {place} is {describe(entry)}, without a 'vid_name' and a 'label' of the vocabulary",
                fault="F28",
            )
        labels.add(video, [names[label] if names else str(label)])
    return labels.finish(are_paths=False)


LAYOUT = ClipsLayout(
    name="diving48",
    title="Diving48",
    patterns=("diving48_v2_{s}.json", "diving48_{s}.json", "diving48*{s}*.json"),
    read=read_dives,
    class_lists=(),
    by_folder=False,
    count=48,
    all_listed=False,
)


@dataset("diving48", subsets=("training", "test"), task="recognition", on_disk=True, classes=48)
def diving48(request: Request) -> Dataset:
    """Diving48: competitive dives, 48 classes that differ in their movements alone."""
    return load(request, LAYOUT)
