"""Data sets by name: requests are validated before any work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.core.types import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset, DatasetKind, FileCounts, Request, datasets
from jostle.errors import BadValue, UnknownName


def test_file_counts_add_up() -> None:
    both = FileCounts(made=1, kept=2) + FileCounts(kept=1, rebuilt=3)
    assert both == FileCounts(1, 3, 3)
    assert str(both) == "1 files made, 3 kept, 3 rebuilt"


def test_every_data_set_is_registered(ours: Callable[[Any], list[Any]]) -> None:
    generated = [
        *("puppets", "puppets-boxes", "puppets-frames", "puppets-moments", "puppets-questions", "puppets-trimmed")
    ]
    assert [kind.name for kind in ours(datasets) if not kind.on_disk] == generated
    assert jostle.names("datasets") == list(datasets)
    assert [kind.name for kind in ours(datasets)] == sorted(
        [
            *generated,
            *("activitynet", "multithumos", "thumos14"),
            *("hmdb51", "kinetics400", "mini-kinetics200", "mini-ssv2", "ssv2", "ucf101"),
            *("imagenet-vid-robust", "imagenet-vid-robust-boxes", "ytbb-robust", "folder", "joined-clips"),
            *("charades", "ego4d-moments", "epic-kitchens-nouns", "epic-kitchens-verbs", "fineaction", "hacs"),
            *("diving48", "egtea", "jester", "moments-in-time", "ucf101-ds"),
            *("egoschema", "mlvu", "mvbench", "next-qa", "perception-test", "tempcompass", "video-mme"),
            *("activitynet-captions", "charades-sta", "qvhighlights"),
        ]
    )
    assert datasets["puppets"].subsets == ("extractor", "training", "validation", "test")
    assert all(kind.summary.endswith(".") for kind in datasets.values())
    own = ("folder", "joined-clips")  # which have the subsets of any folder
    assert all(kind.default_subset in kind.subsets and kind.task for kind in ours(datasets) if kind.name not in own)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "puppet"}, UnknownName, "no data set is called 'puppet': did you mean puppets"),
        ({"name": "puppets", "subset": "train"}, UnknownName, "no subset of puppets is called 'train'"),
        ({"name": "puppets", "jobs": 0}, BadValue, "jobs must be at least 1, got 0"),
        ({"name": "puppets", "annotations": "x.json"}, BadValue, "puppets comes with its own annotations"),
        ({"name": "puppets", "seed": -1}, BadValue, "seed of a data set must not be negative, got -1"),
    ],
)
def test_invalid_requests_are_refused(arguments: dict[str, object], error: type, message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        jostle.load_dataset(**arguments, root=tmp_path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_request_uses_the_cache_as_its_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requests: list[Request] = []
    truth = Truth(("v",), ("wave",), np.array([0]), np.array([0.0]), np.array([1.0]), np.array([0]))

    def load(request: Request) -> Dataset:
        """Return a data set of one video."""
        requests.append(request)
        return Dataset("one", request.subset, request.root, (truth,), {"v": request.root / "v.mp4"}, FileCounts())

    monkeypatch.setitem(datasets._entries, "one", DatasetKind("one", ("test",), load))
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    dataset = jostle.load_dataset("one", seed=3, jobs=2, verify=True)
    assert [replace(one, progress=None) for one in requests] == [Request("test", tmp_path, 3, 2, True, None)]
    assert repr(dataset) == "Dataset(one test: 1 videos, 1 instances)"
    jostle.load_dataset("one", root=tmp_path / "elsewhere")
    assert requests[-1].root == tmp_path / "elsewhere"
    assert requests[-1].jobs >= 1


def test_annotations_are_accessed_by_kind(tmp_path: Path) -> None:
    truth = Truth(("v",), ("wave",), np.array([0]), np.array([0.0]), np.array([1.0]), np.array([0]))
    labels = VideoLabels(("v", "w"), ("wave",), np.array([0, 1]), np.array([0, 0]))
    both = Dataset("one", "test", tmp_path, (labels, truth), {"v": tmp_path / "v.mp4"}, missing=("w",))
    assert (both.task, both.labels, both.truth, both.variant) == ("recognition", labels, truth, None)
    assert repr(both) == "Dataset(one test: 1 videos, 2 labels)"
    assert str(both) == "one test: 1 of 2 videos (1 missing: w)"
    assert both.at_hand().labels.videos == ("v",)
    with pytest.raises(BadValue, match="one is annotated with classes of whole videos and segments, not with sets of"):
        both.frames  # noqa: B018
