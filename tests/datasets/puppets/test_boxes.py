"""Boxes go around what is to be seen of puppets and props, in the frames that look alike."""

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
def made(root: Path) -> Dataset:
    return puppets_boxes(Request("test", root), counts=FEW)


def test_the_sets_are_those_of_the_frame_classifiers(made: Dataset, root: Path) -> None:
    assert made.task == "objects"
    assert made.objects.sets == puppets_frames(Request("test", root), counts=FEW).frames.sets
    assert set(made.objects.frames) == set(made.objects.boxes)
    assert made.objects.classes == CLASSES
    assert repr(made) == f"Dataset(puppets-boxes test: 1 videos, {len(made.objects)} anchors)"
    assert puppets_boxes(Request("test", root), counts=FEW).files == FileCounts(kept=5)


def test_every_frame_has_a_puppet_and_what_it_holds(made: Dataset) -> None:
    """A set is around a prop that is held and seen, so that it is among the boxes."""
    film = Video(0, "test", 1).film()
    held = film.held()
    for frame, boxes in made.objects.boxes.items():
        t = int(frame.rpartition("/")[2])
        assert PUPPET in {CLASSES[label] for label in boxes.label.tolist()}
        assert held.area[t] < 2 * LEAST_AREA or CLASSES.index(held.names[t]) in boxes.label
        assert (boxes.box[:, :2] < boxes.box[:, 2:]).all()
        assert boxes.box.min() >= 0
        assert boxes.box.max() <= 112


def test_a_box_is_where_the_picture_changes_without_the_thing() -> None:
    """Shapes of one prop taken away: what changes lies in its box, up to a pixel of its soft edge."""
    film = Video(0, "test", 1).film()
    everything, shapes, compared = film.things(0, film.frames), film.scene.drawing.shapes, 0
    for number, (first, last) in enumerate(film.scene.owned, len(film.scene.figures)):
        t = int(everything.area[:, number].argmax())
        if not everything.area[t, number]:
            continue  # a prop that waits outside of the picture
        before, kept = film.draw(t, t + 1)[0].astype(int), shapes[t, first:last].copy()
        shapes[t, first:last] = kept - 2**24  # far outside of the picture
        changed = np.abs(film.draw(t, t + 1)[0].astype(int) - before).max(axis=2) > 8
        shapes[t, first:last] = kept
        rows, columns = np.nonzero(changed)
        box = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        assert np.abs(box - everything.box[t, number]).max() <= 2, everything.names[number]
        compared += 1
    assert compared >= 3


def test_a_thing_that_is_hidden_is_not_there() -> None:
    film = Video(0, "test", 1).film()
    everything = film.things(0, film.frames)
    hidden = np.argwhere(everything.area < LEAST_AREA)
    assert len(hidden)
    t = hidden[len(hidden) // 2, 0]
    names = [CLASSES[label] for label in boxes_of(film, [int(t)])[int(t)].label.tolist()]
    there = [name for name, area in zip(everything.names, everything.area[t], strict=True) if area >= LEAST_AREA]
    assert sorted(names) == sorted(there)
    assert len(there) < len(everything.names)
