from __future__ import annotations

import json

import numpy as np
import pytest

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, DataError
from jostle.metrics.pm_k_detection import MatchedFrames, pm_k_detection

SQUARE, BESIDE, AWAY = [0, 0, 10, 10], [20, 0, 30, 10], [50, 50, 60, 60]
SETS = {"a/5.jpg": ["a/4.jpg", "a/6.jpg", "a/9.jpg"], "b/5.jpg": []}
FRAMES = ["a/5.jpg", "a/4.jpg", "a/6.jpg", "a/9.jpg", "b/5.jpg"]
NONE = Boxes([], [], [])


def perfect_detections() -> tuple[dict[str, Boxes], dict[str, Boxes]]:
    """Return perfect detections of two boxes per frame, and the true boxes."""
    truth = Boxes([SQUARE, BESIDE], [3, 7])
    return {f: Boxes(truth.box, truth.label, [0.9, 0.8]) for f in FRAMES}, dict.fromkeys(FRAMES, truth)


def test_perfect_detections_choose_the_anchors() -> None:
    result = pm_k_detection(*perfect_detections(), SETS)
    assert (result.mean_ap, result.pm_k, result.drop) == (1, 1, 0)
    assert result.chosen == {"a/5.jpg": "a/5.jpg", "b/5.jpg": "b/5.jpg"}
    assert (
        pm_k_detection(*perfect_detections(), SETS, include_anchor=False).chosen["a/5.jpg"] == "a/4.jpg"
    )  # nearest, earlier


def test_the_worst_frame_within_k_is_chosen() -> None:
    detections, truth = perfect_detections()
    detections["a/6.jpg"] = Boxes([SQUARE, AWAY], [3, 7], [0.9, 0.7])
    detections["a/9.jpg"] = NONE
    result = pm_k_detection(detections, truth, SETS, 3)
    assert result.chosen["a/5.jpg"] == "a/6.jpg"
    assert result.per_class == {3: (1.0, 1.0), 7: (1.0, 0.5)}
    assert (result.mean_ap, result.pm_k) == (1, 0.75)
    assert result.chosen_by_offset == {0: 1, 1: 1}
    result = pm_k_detection(detections, truth, SETS)
    assert result.chosen["a/5.jpg"] == "a/9.jpg"
    assert (result.pm_k, result.drop) == (0.5, 0.5)
    assert json.loads(json.dumps(result.to_dict()))["chosen_by_offset"] == {"0": 1, "4": 1}


def test_ignore_class_scores_localisation_only() -> None:
    detections, truth = perfect_detections()
    detections = {f: Boxes(boxes.box, boxes.label[::-1], boxes.score) for f, boxes in detections.items()}
    assert pm_k_detection(detections, truth, SETS).pm_k == 0
    assert pm_k_detection(detections, truth, SETS, ignore_class=True).pm_k == 1


def test_iou_and_repeated_detections() -> None:
    truth = {"a/1.jpg": Boxes([SQUARE], [0])}
    sets = {"a/1.jpg": []}
    half = {"a/1.jpg": Boxes([[0, 0, 10, 20]], [0], [0.9])}  # the IoU is exactly 0.5
    assert pm_k_detection(half, truth, sets).pm_k == 1
    assert pm_k_detection(half, truth, sets, iou=0.51).pm_k == 0
    repeated = {"a/1.jpg": Boxes([AWAY, SQUARE, SQUARE], [0, 0, 0], [0.9, 0.8, 0.7])}
    assert pm_k_detection(repeated, truth, sets).pm_k == 0.5


def test_frame_without_true_boxes_is_not_chosen() -> None:
    detections, truth = perfect_detections()
    truth["a/6.jpg"] = Boxes([], [])
    assert pm_k_detection(detections, truth, SETS).chosen["a/5.jpg"] == "a/5.jpg"


def test_invalid_inputs_are_refused() -> None:
    detections, truth = perfect_detections()
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


def test_bootstrap_weights_equal_repeated_videos() -> None:
    rng = np.random.default_rng(3)
    sets = {f"v{i}/5.jpg": [f"v{i}/6.jpg"] for i in range(6)}
    frames = [frame for anchor, others in sets.items() for frame in (anchor, *others)]
    truth = {frame: Boxes([[0, 0, 10, 10], [20, 20, 30, 30]], rng.integers(0, 3, 2)) for frame in frames}
    detections = {
        frame: Boxes(truth[frame].box + rng.integers(0, 5, (2, 1)), truth[frame].label, rng.random(2))
        for frame in frames
    }
    result = pm_k_detection(detections, truth, sets, draws=200)
    weights = np.array([[1] * 6, [1, 1, 1, 0, 0, 0], [2, 0, 1, 0, 0, 3]], np.int16)
    drawn, _ = MatchedFrames.of(detections, truth, sets, 10).drawn(weights)
    assert drawn[0] == pytest.approx(result.pm_k, abs=1e-12)
    half = {anchor: others for anchor, others in sets.items() if anchor[:2] in ("v0", "v1", "v2")}
    assert drawn[1] == pytest.approx(pm_k_detection(detections, truth, half).pm_k, abs=1e-12)
    # A video drawn twice equals two videos with the same frames.
    copies = [(f"w{i}", v) for i, v in enumerate(np.repeat(range(6), weights[2]))]
    many = {f"{w}/5.jpg": [f"{w}/6.jpg"] for w, _ in copies}
    again = [{f"{w}/{n}.jpg": one[f"v{v}/{n}.jpg"] for w, v in copies for n in (5, 6)} for one in (detections, truth)]
    assert drawn[2] == pytest.approx(pm_k_detection(*again, many).pm_k, abs=1e-12)
    assert result.pm_k_interval[0] < result.pm_k < result.pm_k_interval[1]
    assert pm_k_detection(detections, truth, sets).pm_k_interval is None
