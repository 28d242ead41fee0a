"""Boxes around the visible parts of puppets and props in the sets of similar frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.datasets.dataset import Dataset, FileCounts, Request
from jostle.datasets.puppets.film import PUPPET
from jostle.datasets.puppets.similar_frames import CLASSES, LEAST_AREA, boxes_of, puppets_boxes, puppets_frames
from jostle.datasets.puppets.untrimmed import Video

FEW = {"training": 2, "test": 1}


@pytest.fixture(scope="module")
def dataset(root: Path) -> Dataset:
    return puppets_boxes(Request("test", root), counts=FEW)


def test_sets_equal_those_of_the_frame_data_set(dataset: Dataset, root: Path) -> None:
    assert dataset.task == "objects"
    assert dataset.objects.sets == puppets_frames(Request("test", root), counts=FEW).frames.sets
    assert set(dataset.objects.frames) == set(dataset.objects.boxes)
    assert dataset.objects.classes == CLASSES
    assert repr(dataset) == f"Dataset(puppets-boxes test: 1 videos, {len(dataset.objects)} anchors)"
    assert puppets_boxes(Request("test", root), counts=FEW).files == FileCounts(kept=5)


def test_every_frame_has_boxes_of_a_puppet_and_its_prop(dataset: Dataset) -> None:
    """Sets are chosen around a visible held prop, so the prop must be among the boxes."""
    film = Video(0, "test", 1).film()
    props = film.held()
    for frame, boxes in dataset.objects.boxes.items():
        t = int(frame.rpartition("/")[2])
        assert PUPPET in {CLASSES[label] for label in boxes.label.tolist()}
        assert props.area[t] < 2 * LEAST_AREA or CLASSES.index(props.names[t]) in boxes.label
        assert (boxes.box[:, :2] < boxes.box[:, 2:]).all()
        assert boxes.box.min() >= 0
        assert boxes.box.max() <= 112


def test_a_box_covers_the_pixels_of_its_object() -> None:
    """Removing the shapes of a prop changes pixels in its box only, up to its soft edge."""
    film = Video(0, "test", 1).film()
    everything, shapes, compared = film.things(0, film.frames), film.scene.drawing.shapes, 0
    for number, (first, last) in enumerate(film.scene.owned, len(film.scene.figures)):
        t = int(everything.area[:, number].argmax())
        if not everything.area[t, number]:
            continue  # a prop outside of the picture
        before, original = film.draw(t, t + 1)[0].astype(int), shapes[t, first:last].copy()
        shapes[t, first:last] = original - 2**24  # far outside of the picture
        changed = np.abs(film.draw(t, t + 1)[0].astype(int) - before).max(axis=2) > 8
        shapes[t, first:last] = original
        rows, columns = np.nonzero(changed)
        box = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        assert np.abs(box - everything.box[t, number]).max() <= 2, everything.names[number]
        compared += 1
    assert compared >= 3


def test_hidden_objects_have_no_box() -> None:
    film = Video(0, "test", 1).film()
    everything = film.things(0, film.frames)
    hidden = np.argwhere(everything.area < LEAST_AREA)
    assert len(hidden)
    t = hidden[len(hidden) // 2, 0]
    names = [CLASSES[label] for label in boxes_of(film, [int(t)])[int(t)].label.tolist()]
    visible = [name for name, area in zip(everything.names, everything.area[t], strict=True) if area >= LEAST_AREA]
    assert sorted(names) == sorted(visible)
    assert len(visible) < len(everything.names)
