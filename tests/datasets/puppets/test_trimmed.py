"""Trimmed puppet clips on disk: class folders and recognition lists."""

from __future__ import annotations

import pytest

import jostle
from jostle.datasets.dataset import Dataset, FileCounts, Request
from jostle.datasets.puppets.film import CLASSES
from jostle.datasets.puppets.parameters import CLIP_CASTS
from jostle.datasets.puppets.trimmed import TrimmedClip, puppets_trimmed
from jostle.io.files.annotations import read_video_labels

FEW = {"train": 2, "val": 1}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Generate one clip of each class."""
    return puppets_trimmed(Request("val", tmp_path_factory.mktemp("root")), counts=FEW)


def test_clips_are_in_class_folders(dataset: Dataset) -> None:
    assert dataset.files == FileCounts(made=4 + len(CLASSES))
    assert sorted(path.name for path in (dataset.folder / "val").iterdir()) == list(CLASSES)
    assert dataset.videos["puppet_val_wave_0001"] == dataset.folder / "val" / "wave" / "puppet_val_wave_0001.mp4"
    assert all(path.stat().st_size for path in dataset.videos.values())


def test_labels_and_truth_have_one_action_a_clip(dataset: Dataset) -> None:
    truth, labels = dataset.truth, dataset.labels
    assert (dataset.task, labels.classes, labels.videos) == ("recognition", CLASSES, tuple(dataset.videos))
    assert truth.video.tolist() == list(range(len(CLASSES)))
    assert labels.label.tolist() == truth.label.tolist()
    for name, label in zip(truth.videos, truth.label, strict=True):
        assert truth.classes[label] in name
    assert (truth.end <= truth.duration).all()
    assert ((truth.duration >= 1.5) & (truth.duration <= 6)).all()


def test_the_lists_are_read_as_recognition_lists(dataset: Dataset) -> None:
    labels = read_video_labels(dataset.folder / "train.txt")
    assert len(labels) == 2 * len(CLASSES)
    names = (dataset.folder / "classes.txt").read_text().split()
    assert tuple(names) == CLASSES
    for path, label in zip(labels.paths, labels.label, strict=True):
        assert path.split("/")[:2] == ["train", names[int(labels.classes[label])]]
    own = read_video_labels(dataset.folder / "val.txt")
    assert {dataset.folder / path for path in own.paths} == set(dataset.videos.values())


def test_clips_use_puppets_of_their_split() -> None:
    for subset, cast in CLIP_CASTS.items():
        film = TrimmedClip(0, subset, "bow", 3).film()
        assert {action.puppet for action in film.actions} < set(cast)


def test_the_file_has_the_frames_of_the_film(dataset: Dataset) -> None:
    clip = TrimmedClip(0, "val", "kick", 1)
    assert len(jostle.read(dataset.videos[clip.id]).frames) == clip.film().frames


def test_a_damaged_clip_is_rebuilt(dataset: Dataset) -> None:
    path = dataset.videos["puppet_val_jump_0001"]
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    request = Request("val", dataset.folder.parents[1])
    assert puppets_trimmed(request, counts=FEW).files == FileCounts(kept=3 + len(CLASSES), rebuilt=1)
    assert path.read_bytes() == good
