"""Shipped object detector on frames with an unseen cast of puppets."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jostle.datasets.puppets import similar_frames as puppets
from jostle.datasets.puppets.untrimmed import Video
from jostle.errors import BadValue, CheckpointError
from jostle.metrics.pm_k_detection import pm_k_detection
from jostle.models.loading.objects import load_object_detector
from jostle.models.loading.objects import load_object_detector as load_with
from jostle.models.objects.object_detector import ObjectDetector, as_object_detector
from jostle.models.objects.puppet_boxes import CLASSES, BoxNetwork, _peaks


@pytest.fixture(scope="module")
def detector() -> ObjectDetector:
    return load_object_detector("puppet_boxes", weights="clean")


def test_detector_finds_puppets_and_props(detector: ObjectDetector) -> None:
    film = Video(0, "test", 2).film()
    numbers = list(range(30, film.frames, film.frames // 16))
    names = [f"v/{t:06d}" for t in numbers]
    frames = np.concatenate([film.draw(t, t + 1) for t in numbers])
    truth = dict(zip(names, puppets.boxes_of(film, numbers).values(), strict=True))
    predictions = dict(zip(names, detector(frames), strict=True))
    assert pm_k_detection(predictions, truth, {name: [] for name in names}).mean_ap > 0.6
    # Neither the batch nor twice the resolution changes the boxes.
    (single,) = detector(frames[3:4])
    assert single.box.tolist() == predictions[names[3]].box.tolist()
    (large,) = detector(frames[3:4].repeat(2, axis=1).repeat(2, axis=2))
    confident = single.sure > 0.5
    assert np.abs(large.box[: confident.sum()] - 2 * single.box[confident]).max() < 2


def test_of_equal_peaks_the_first_are_kept() -> None:
    scores = torch.zeros(2, 28, 28)
    scores[:, ::2, ::2] = 0.5
    boxes = _peaks(scores, torch.ones(4, 28, 28), np.ones(4))
    places = [(label, row, column) for label in range(2) for row in range(0, 28, 2) for column in range(0, 28, 2)]
    first = places[: len(boxes)]
    assert len(first) == 60
    assert boxes.label.tolist() == [label for label, _, _ in first]
    middles = (boxes.box[:, :2] + boxes.box[:, 2:]) / 2
    assert middles.tolist() == [[4 * (column + 0.5), 4 * (row + 0.5)] for _, row, column in first]


def test_classes_equal_those_of_the_dataset() -> None:
    assert puppets.CLASSES == CLASSES


def test_invalid_weights_and_inputs_are_refused(detector: ObjectDetector) -> None:
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
