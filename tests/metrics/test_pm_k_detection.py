from __future__ import annotations

import json

import numpy as np
import pytest

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, DataError
from jostle.metrics.pm_k_detection import bootstrap_pm_k, pm_k_detection

SQUARE, BESIDE, AWAY = [0, 0, 10, 10], [20, 0, 30, 10], [50, 50, 60, 60]
SETS = {"a/5.jpg": ["a/4.jpg", "a/6.jpg", "a/9.jpg"], "b/5.jpg": []}
FRAMES = ["a/5.jpg", "a/4.jpg", "a/6.jpg", "a/9.jpg", "b/5.jpg"]
NONE = Boxes([], [], [])


def right() -> tuple[dict[str, Boxes], dict[str, Boxes]]:
    """Two boxes of two classes in each frame, and detections of them."""
    truth = Boxes([SQUARE, BESIDE], [3, 7])
    return {f: Boxes(truth.box, truth.label, [0.9, 0.8]) for f in FRAMES}, dict.fromkeys(FRAMES, truth)


def test_nothing_wrong_chooses_the_anchors() -> None:
    found = pm_k_detection(*right(), SETS)
    assert (found.mean_ap, found.pm_k, found.drop) == (1, 1, 0)
    assert found.chosen == {"a/5.jpg": "a/5.jpg", "b/5.jpg": "b/5.jpg"}
    assert pm_k_detection(*right(), SETS, include_anchor=False).chosen["a/5.jpg"] == "a/4.jpg"  # nearest, earlier


def test_the_worst_frame_within_k_is_chosen() -> None:
    detections, truth = right()
    detections["a/6.jpg"] = Boxes([SQUARE, AWAY], [3, 7], [0.9, 0.7])
    detections["a/9.jpg"] = NONE
    found = pm_k_detection(detections, truth, SETS, 3)
    assert found.chosen["a/5.jpg"] == "a/6.jpg"
    assert found.per_class == {3: (1.0, 1.0), 7: (1.0, 0.5)}
    assert (found.mean_ap, found.pm_k) == (1, 0.75)
    assert found.chosen_by_offset == {0: 1, 1: 1}
    found = pm_k_detection(detections, truth, SETS)
    assert found.chosen["a/5.jpg"] == "a/9.jpg"
    assert (found.pm_k, found.drop) == (0.5, 0.5)
    assert json.loads(json.dumps(found.to_dict()))["chosen_by_offset"] == {"0": 1, "4": 1}


def test_localisation_ignores_classes() -> None:
    detections, truth = right()
    detections = {f: Boxes(boxes.box, boxes.label[::-1], boxes.score) for f, boxes in detections.items()}
    assert pm_k_detection(detections, truth, SETS).pm_k == 0
    assert pm_k_detection(detections, truth, SETS, ignore_class=True).pm_k == 1


def test_iou_and_repeated_detections() -> None:
    truth = {"a/1.jpg": Boxes([SQUARE], [0])}
    sets = {"a/1.jpg": []}
    half = {"a/1.jpg": Boxes([[0, 0, 10, 20]], [0], [0.9])}  # IoU is 0.5 exactly
    assert pm_k_detection(half, truth, sets).pm_k == 1
    assert pm_k_detection(half, truth, sets, iou=0.51).pm_k == 0
    twice = {"a/1.jpg": Boxes([AWAY, SQUARE, SQUARE], [0, 0, 0], [0.9, 0.8, 0.7])}
    assert pm_k_detection(twice, truth, sets).pm_k == 0.5


def test_a_frame_without_truth_is_not_chosen() -> None:
    detections, truth = right()
    truth["a/6.jpg"] = Boxes([], [])
    assert pm_k_detection(detections, truth, SETS).chosen["a/5.jpg"] == "a/5.jpg"


def test_what_is_refused() -> None:
    detections, truth = right()
    with pytest.raises(DataError, match=r"1 of 5 frames have no detections, the first: a/6\.jpg"):
        pm_k_detection({f: detections[f] for f in FRAMES if f != "a/6.jpg"}, truth, SETS)
    with pytest.raises(DataError, match="4 of 5 frames have no true boxes"):
        pm_k_detection(detections, {"b/5.jpg": truth["b/5.jpg"]}, SETS)
    with pytest.raises(DataError, match="detections need scores; these look like true boxes"):
        pm_k_detection(truth, truth, SETS)
    with pytest.raises(DataError, match="has a true box; nothing can be scored"):
        pm_k_detection(detections, dict.fromkeys(FRAMES, Boxes([], [])), SETS)
    with pytest.raises(BadValue, match="iou must be above 0 and at most 1, got 0"):
        pm_k_detection(detections, truth, SETS, iou=0)
    with pytest.raises(BadValue, match=r"boxes must be \(N, 4\) and labels \(N,\), got \(4,\) and \(1,\)"):
        Boxes(SQUARE, [0])
    with pytest.raises(BadValue, match="1 boxes need as many scores"):
        Boxes([SQUARE], [0], [0.1, 0.2])
    with pytest.raises(BadValue, match="must be finite"):
        Boxes([[0, 0, np.nan, 1]], [0])


def test_draws_count_videos_as_often_as_they_are_drawn() -> None:
    rng = np.random.default_rng(3)
    sets = {f"v{i}/5.jpg": [f"v{i}/6.jpg"] for i in range(6)}
    frames = [frame for anchor, others in sets.items() for frame in (anchor, *others)]
    truth = {frame: Boxes([[0, 0, 10, 10], [20, 20, 30, 30]], rng.integers(0, 3, 2)) for frame in frames}
    found = {
        frame: Boxes(truth[frame].box + rng.integers(0, 5, (2, 1)), truth[frame].label, rng.random(2))
        for frame in frames
    }
    videos = [f"v{i}" for i in range(6)]
    whole = pm_k_detection(found, truth, sets, draws=200)
    weights = np.array([[1] * 6, [1, 1, 1, 0, 0, 0], [2, 0, 1, 0, 0, 3]], np.int16)
    drawn = bootstrap_pm_k(found, truth, sets, 10, videos, weights)
    assert drawn[0] == pytest.approx(whole.pm_k, abs=1e-12)
    half = {anchor: others for anchor, others in sets.items() if anchor[:2] in ("v0", "v1", "v2")}
    assert drawn[1] == pytest.approx(pm_k_detection(found, truth, half).pm_k, abs=1e-12)
    # A video drawn twice is as two videos with the same frames.
    copies = [(f"w{i}", v) for i, v in enumerate(np.repeat(range(6), weights[2]))]
    many = {f"{w}/5.jpg": [f"{w}/6.jpg"] for w, _ in copies}
    again = [{f"{w}/{n}.jpg": one[f"v{v}/{n}.jpg"] for w, v in copies for n in (5, 6)} for one in (found, truth)]
    assert drawn[2] == pytest.approx(pm_k_detection(*again, many).pm_k, abs=1e-12)
    assert whole.pm_k_interval is not None
    assert whole.pm_k_interval[0] < whole.pm_k < whole.pm_k_interval[1]
    assert pm_k_detection(found, truth, sets).pm_k_interval is None
