"""The shipped detector finds puppets and props in frames of a cast that it has not seen."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from jostle.datasets.puppets import similar_frames as puppets
from jostle.datasets.puppets.untrimmed import Video
from jostle.errors import BadValue, CheckpointError
from jostle.metrics.pm_k_detection import pm_k_detection
from jostle.models.loading.models import load_object_detector
from jostle.models.objects.object_detector import ObjectDetector, as_object_detector
from jostle.models.objects.object_detector import load_object_detector as load_with
from jostle.models.objects.puppet_boxes import CLASSES, BoxNetwork


@pytest.fixture(scope="module")
def detector() -> ObjectDetector:
    return load_object_detector("puppet_boxes", weights="clean")


def test_it_finds_what_is_there(detector: ObjectDetector) -> None:
    film = Video(0, "test", 2).film()
    numbers = list(range(30, film.frames, film.frames // 16))
    names = [f"v/{t:06d}" for t in numbers]
    frames = np.concatenate([film.draw(t, t + 1) for t in numbers])
    truth = dict(zip(names, puppets.boxes_of(film, numbers).values(), strict=True))
    found = dict(zip(names, detector(frames), strict=True))
    assert pm_k_detection(found, truth, {name: [] for name in names}).mean_ap > 0.6
    # In other company, and twice as large, it is the same.
    (alone,) = detector(frames[3:4])
    assert alone.box.tolist() == found[names[3]].box.tolist()
    (large,) = detector(frames[3:4].repeat(2, axis=1).repeat(2, axis=2))
    sure = alone.sure > 0.5
    assert np.abs(large.box[: sure.sum()] - 2 * alone.box[sure]).max() < 2


def test_its_classes_are_those_of_the_data_set() -> None:
    assert puppets.CLASSES == CLASSES


def test_what_is_wrong_is_said(detector: ObjectDetector) -> None:
    with pytest.raises(BadValue, match="an untrained network finds nothing"):
        load_with("puppet_boxes")
    with pytest.raises(CheckpointError, match=r"no middles\.bias"):
        load_with("puppet_boxes", weights={})
    with pytest.raises(BadValue, match=r"\(N, H, W, 3\) uint8, got \(2, 3\)"):
        detector(np.zeros((2, 3), np.uint8))
    with pytest.raises(BadValue, match="does not say what its outputs mean"):
        as_object_detector(BoxNetwork(), "mine")
    with pytest.raises(BadValue, match="is called on frames"):
        as_object_detector(3, "mine")
