"""The untrimmed videos on disk: they are what the annotations say, and whole."""

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
def made(root: Path) -> Dataset:
    """One test video, and annotations of it and of two that are not drawn."""
    return puppets(Request("test", root), counts=FEW)


def test_a_subset_is_made_when_it_is_asked_for(made: Dataset) -> None:
    assert made.files.rebuilt == 0
    assert made.folder.name == "puppets-v1-seed0"
    assert list(made.videos) == ["puppet_test_0001"]
    assert made.videos["puppet_test_0001"] == made.folder / "test" / "puppet_test_0001.mp4"
    assert made.videos["puppet_test_0001"].is_file()
    assert not (made.folder / "training").exists()


def test_the_annotations_are_of_all_subsets_and_load_like_any(made: Dataset) -> None:
    whole = jostle.load_truth(made.folder / "annotations.json")
    assert whole.subsets == ("training", "training", "test")
    assert made.truth.subset == "test"
    assert made.truth.videos == ("puppet_test_0001",)
    assert set(whole.classes) <= set(CLASSES)
    assert whole.label_ids == tuple(CLASSES.index(name) for name in whole.classes)
    document = json.loads((made.folder / "annotations.json").read_text())
    entry = document["database"]["puppet_test_0001"]
    assert entry["fps"] == 24
    assert entry["annotations"][0].keys() == {"label", "segment", "segment(frames)", "label_id"}


def test_the_video_is_as_long_and_as_large_as_the_annotations_say(made: Dataset) -> None:
    path = made.videos["puppet_test_0001"]
    facts = probe(path)
    film = Video(0, "test", 1).film()
    assert (facts.height, facts.width, facts.fps) == (112, 112, 24)
    assert 40 <= made.truth.duration[0] <= 90
    assert film.frames == round(made.truth.duration[0] * 24)
    assert (made.truth.end <= made.truth.duration[0]).all()
    shown = jostle.read(path)
    assert len(shown.frames) == film.frames
    drawn = film.draw(100, 104).astype(int)
    assert np.abs(shown.frames[100:104] - drawn).mean() < 6  # what H.264 took


def test_nothing_is_made_twice_and_damage_is_mended(made: Dataset) -> None:
    request = Request("test", made.folder.parent)
    assert puppets(request, counts=FEW).files == FileCounts(kept=2)
    (made.folder / "annotations.json").write_text("{}")
    again = puppets(request, counts=FEW)
    assert again.files == FileCounts(kept=1, rebuilt=1)
    assert again.truth.fingerprint == made.truth.fingerprint


def test_another_seed_is_another_film_in_another_folder() -> None:
    one, other = Video(0, "test", 1), Video(1, "test", 1)
    assert one.key != other.key
    assert one.film().actions != other.film().actions


def test_a_full_disk_leaves_no_half_video(tmp_path: Path) -> None:
    """A limit on the size of a file is the full disk of a process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(ResourceError, match=r"no space left on the disk for .*/puppet_test_0001\.mp4; free some"):
            puppets(Request("test", tmp_path), counts={"test": 1})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.rglob("*test_0001*"))
    assert list(tmp_path.rglob("annotations.json"))
