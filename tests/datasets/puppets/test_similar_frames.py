"""Similar frames are selected by one threshold, and pm-k reads the written sets."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.datasets.dataset import Dataset, FileCounts, Request
from jostle.datasets.puppets.similar_frames import (
    EVERY,
    LABELS,
    LEAST_AREA,
    MOST_DIFFERENT,
    SHIFT,
    K,
    difference,
    puppets_frames,
    similar_frames,
)
from jostle.datasets.puppets.untrimmed import Video
from jostle.io.formats.frame_scores import read_frame_labels, read_frame_sets
from jostle.metrics.frame_sets import frame_number

FEW = {"training": 2, "test": 1}


@pytest.fixture(scope="module")
def dataset(root: Path) -> Dataset:
    """Build the frame sets of one test video."""
    return puppets_frames(Request("test", root), counts=FEW)


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    return np.random.default_rng(3).integers(40, 200, (112, 112), np.uint8)


@pytest.mark.parametrize("shift", [(0, 0), (SHIFT, -SHIFT), (-1, 2)])
def test_a_small_camera_shift_makes_no_difference(picture: np.ndarray, shift: tuple[int, int]) -> None:
    assert difference(picture, np.roll(picture, shift, axis=(0, 1))) == 0


def test_a_larger_shift_makes_a_difference(picture: np.ndarray) -> None:
    assert difference(picture, np.roll(picture, SHIFT + 1, axis=0)) > MOST_DIFFERENT


def test_a_change_in_one_tile_is_detected(picture: np.ndarray) -> None:
    changed = picture.copy()
    changed[30:56, 30:56] += 50  # the second tile of the second row: a sixteenth of the frame
    assert difference(picture, changed) == 50
    assert np.abs(changed.astype(int) - picture).mean() < 4


def test_the_threshold_alone_decides(picture: np.ndarray) -> None:
    frames = np.stack([picture + np.uint8(step) for step in range(0, 24, 2)])
    frames = np.repeat(frames[..., None], 3, axis=-1)
    assert similar_frames(frames, 0, range(1, 12)) == [t for t in range(1, 12) if 2 * t <= MOST_DIFFERENT]


def test_sets_are_similar_frames_within_k_with_the_same_prop(dataset: Dataset) -> None:
    sets = read_frame_sets(dataset.folder / "pmsets.json")
    labels = read_frame_labels(dataset.folder / "labels.json")
    assert len(sets) > 3
    assert (dataset.task, set(dataset.frames.labels)) == ("frames", set(labels))
    assert set(dataset.frames.videos) <= set(dataset.videos)
    film = Video(0, "test", 1).film()
    props = film.held()
    for anchor, near in sets.items():
        video, number = frame_number(anchor)
        assert video == "puppet_test_0001/"
        assert labels[anchor] == [LABELS.index(props.names[number])]
        numbers = [frame_number(frame)[1] for frame in near]
        assert numbers == sorted(numbers)
        assert all(0 < abs(n - number) <= K and labels[f] == labels[anchor] for n, f in zip(numbers, near, strict=True))
        assert all(props.area[n] >= LEAST_AREA for n in (number, *numbers))
    stretches = [frame_number(anchor)[1] // EVERY for anchor in sets]
    assert len(set(stretches)) == len(stretches)
    assert set(labels) == {frame for anchor, near in sets.items() for frame in (anchor, *near)}
    assert (dataset.folder / "classes.txt").read_text().split() == list(LABELS)


def test_pm_k_accepts_the_sets(dataset: Dataset) -> None:
    sets = read_frame_sets(dataset.folder / "pmsets.json")
    labels = read_frame_labels(dataset.folder / "labels.json")
    right = {frame: np.eye(len(LABELS))[label[0]] for frame, label in labels.items()}  # type: ignore[index]
    result = jostle.pm_k(right, sets, labels)
    assert (result.anchors, result.accuracy, result.pm_k) == (len(sets), 1.0, 1.0)


def test_sets_are_reused_also_in_a_moved_cache(dataset: Dataset, tmp_path: Path) -> None:
    root = dataset.folder.parents[2]
    assert puppets_frames(Request("test", root), counts=FEW).files == FileCounts(kept=6)
    shutil.copytree(root, tmp_path / "moved")
    assert puppets_frames(Request("test", tmp_path / "moved"), counts=FEW).files == FileCounts(kept=6)
