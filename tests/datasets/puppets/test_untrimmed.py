"""Untrimmed puppet videos on disk: complete files that agree with their annotations."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.datasets.dataset import Dataset, FileCounts, Request
from jostle.datasets.puppets.film import CLASSES
from jostle.datasets.puppets.untrimmed import Video, puppets
from jostle.errors import ResourceError
from jostle.io.video.source import probe

FEW = {"training": 2, "test": 1}


@pytest.fixture(scope="module")
def dataset(root: Path) -> Dataset:
    """Generate one test video, with annotations of it and of two that are not drawn."""
    return puppets(Request("test", root), counts=FEW)


def test_only_the_requested_subset_is_generated(dataset: Dataset) -> None:
    assert dataset.files.rebuilt == 0
    assert dataset.folder.name == "puppets-v1-seed0"
    assert list(dataset.videos) == ["puppet_test_0001"]
    assert dataset.videos["puppet_test_0001"] == dataset.folder / "test" / "puppet_test_0001.mp4"
    assert dataset.videos["puppet_test_0001"].is_file()
    assert not (dataset.folder / "training").exists()


def test_annotations_cover_all_subsets(dataset: Dataset) -> None:
    all_truth = jostle.load_truth(dataset.folder / "annotations.json")
    assert all_truth.subsets == ("training", "training", "test")
    assert dataset.truth.subset == "test"
    assert dataset.truth.videos == ("puppet_test_0001",)
    assert set(all_truth.classes) <= set(CLASSES)
    assert all_truth.label_ids == tuple(CLASSES.index(name) for name in all_truth.classes)
    document = json.loads((dataset.folder / "annotations.json").read_text())
    entry = document["database"]["puppet_test_0001"]
    assert entry["fps"] == 24
    assert entry["annotations"][0].keys() == {"label", "segment", "segment(frames)", "label_id"}


def test_the_video_agrees_with_its_annotations(dataset: Dataset) -> None:
    path = dataset.videos["puppet_test_0001"]
    facts = probe(path)
    film = Video(0, "test", 1).film()
    assert (facts.height, facts.width, facts.fps) == (112, 112, 24)
    assert 40 <= dataset.truth.duration[0] <= 90
    assert film.frames == round(dataset.truth.duration[0] * 24)
    assert (dataset.truth.end <= dataset.truth.duration[0]).all()
    decoded = jostle.read(path)
    assert len(decoded.frames) == film.frames
    drawn = film.draw(100, 104).astype(int)
    assert np.abs(decoded.frames[100:104] - drawn).mean() < 6  # the loss of H.264


def test_files_are_reused_and_damaged_ones_rebuilt(dataset: Dataset) -> None:
    request = Request("test", dataset.folder.parent)
    assert puppets(request, counts=FEW).files == FileCounts(kept=2)
    (dataset.folder / "annotations.json").write_text("{}")
    repaired = puppets(request, counts=FEW)
    assert repaired.files == FileCounts(kept=1, rebuilt=1)
    assert repaired.truth.fingerprint == dataset.truth.fingerprint


def test_another_seed_gives_another_film() -> None:
    one, other = Video(0, "test", 1), Video(1, "test", 1)
    assert one.key != other.key
    assert one.film().actions != other.film().actions


def test_a_full_disk_leaves_no_half_video(tmp_path: Path) -> None:
    """A limit on file sizes simulates a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(ResourceError, match=r"no space left on the disk for .*/puppet_test_0001\.mp4; free some"):
            puppets(Request("test", tmp_path), counts={"test": 1})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.rglob("*test_0001*"))
    assert list(tmp_path.rglob("annotations.json"))
