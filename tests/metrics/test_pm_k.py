"""Metric pm-k on small handmade sets; tests/reference has the published ones."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.errors import BadValue, DataError
from jostle.metrics.frame_sets import (
    frame_number,
    pairs_within,
    reviewed_sets,
    valid_anchors,
    valid_pairs,
    without_frame_types,
)
from jostle.metrics.pm_k import OffsetCount, pm_k

SETS = {"a/05.jpg": ["a/03.jpg", "a/04.jpg", "a/06.jpg"], "b/05.jpg": ["b/04.jpg", "b/08.jpg"], "c/01.jpg": []}
FRAMES = ["a/05.jpg", "b/05.jpg", "c/01.jpg", "a/03.jpg", "a/04.jpg", "a/06.jpg", "b/04.jpg", "b/08.jpg"]
LABELS = {frame: [0] for frame in FRAMES}


def make_predictions(**wrong: int) -> dict[str, int]:
    """Predict class 0 for every frame except those given as `a03=1`."""
    return {frame: wrong.get(frame[0] + frame[2:4], 0) for frame in FRAMES}


def same_scores(scores: list[float]) -> dict[str, list[float]]:
    return dict.fromkeys(FRAMES, scores)


def test_wrong_neighbour_counts_from_its_distance_on() -> None:
    result = pm_k(make_predictions(a03=1), SETS, LABELS, 3)
    assert result.correct_by_radius == (3, 3, 2, 2)
    assert (result.accuracy, result.pm_k, result.drop) == (1.0, 2 / 3, 1 / 3)
    assert pm_k(make_predictions(a03=1), SETS, LABELS, 1).pm_k == 1.0
    assert pm_k(make_predictions(a03=1), SETS, LABELS, 0).pm_k == 1.0


def test_wrong_anchor_counts_unless_excluded() -> None:
    scores = make_predictions(a05=1, c01=1)
    assert pm_k(scores, SETS, LABELS).pm_k == 1 / 3
    without_anchor = pm_k(scores, SETS, LABELS, include_anchor=False)
    assert without_anchor.accuracy == 1 / 3
    assert without_anchor.pm_k == 2 / 3  # the set of c is empty, so its anchor counts
    assert without_anchor.correct_by_radius == (1, *[2] * 10)


def test_counts_by_offset() -> None:
    result = pm_k(make_predictions(a05=1, a04=1, b04=1), SETS, LABELS)
    assert result.by_offset == {
        -2: OffsetCount(1, 0, 0, 0),
        -1: OffsetCount(2, 2, 1, 1),
        1: OffsetCount(1, 0, 0, 0),
        3: OffsetCount(1, 0, 1, 0),
    }
    assert result.error_by_offset == {-2: 0.0, -1: 1.0, 1: 0.0, 3: 0.0}
    assert (result.pairs, result.neighbours_median) == (5, 2.0)


def test_labels_of_anchor_or_frame() -> None:
    labels = LABELS | {"a/03.jpg": [1], "b/08.jpg": [0, 1]}
    scores = make_predictions(a03=1, b08=1)
    assert pm_k(scores, SETS, labels).pm_k == 1.0
    assert pm_k(scores, SETS, labels, labels_of="anchor").pm_k == 1 / 3
    anchors_only = dict.fromkeys(SETS, 0)
    assert pm_k(scores, SETS, anchors_only, labels_of="anchor").pm_k == 1 / 3


def test_first_of_equal_class_scores_wins() -> None:
    scores = {frame: np.array([1.0, 1.0, -np.inf]) for frame in FRAMES}
    assert pm_k(scores, SETS, LABELS).pm_k == 1.0
    assert pm_k(scores, SETS, dict.fromkeys(FRAMES, 1)).pm_k == 0.0


def test_frames_beyond_k_need_no_scores_or_labels() -> None:
    scores = {frame: 0 for frame in FRAMES if frame not in ("a/03.jpg", "b/08.jpg")}
    assert pm_k(scores, SETS, dict.fromkeys(scores, 0), 1).pm_k == 1.0


def test_anchor_and_duplicates_in_a_set_are_ignored() -> None:
    pairs = pairs_within({"a/05.jpg": ["a/05.jpg", "a/06.jpg", "a/06.jpg"]}, 10)
    assert pairs.offset.tolist() == [1]


@pytest.mark.parametrize(
    ("key", "video", "number"),
    [
        ("img_00012.png", "img_", 12),
        ("v/frame-7.jp2", "v/frame-", 7),
        ("v2/9", "v2/", 9),
        ("2019/x/000001_left.JPEG", "2019/x/", 1),
    ],
)
def test_frame_number_is_parsed_from_the_file_name(key: str, video: str, number: int) -> None:
    assert frame_number(key) == (video, number)


@pytest.mark.parametrize(
    ("scores", "sets", "labels", "message"),
    [
        ({}, SETS, LABELS, "8 of 8 frames have no scores, the first: a/05.jpg, b/05.jpg, c/01.jpg, ...; give every"),
        (make_predictions(), SETS, {"a/05.jpg": [0]}, "7 of 8 frames have no labels, the first: b/05.jpg, c/01.jpg"),
        (
            make_predictions(),
            SETS,
            LABELS | {"b/04.jpg": []},
            "b/04.jpg has no label at all; every label must be a whole",
        ),
        (same_scores([0.0, 1.0]), SETS, LABELS | {"b/04.jpg": 2}, "label 2; every .* a class from 0 to 1"),
        (make_predictions() | {"b/04.jpg": [1, 2]}, SETS, LABELS, "a/05.jpg has one class but b/04.jpg has 2 scores"),
        (same_scores([0, np.nan]), SETS, LABELS, "8 of 8 frames have NaN scores or no finite best one"),
        (same_scores([-np.inf]), SETS, LABELS, "no finite best one, the first: a/05.jpg"),
        (same_scores([]), SETS, LABELS, "a/05.jpg has no scores of any class"),
        (dict.fromkeys(FRAMES, 0.5), SETS, LABELS, "must be a whole number from 0; give class numbers or scores"),
        (make_predictions(), {}, LABELS, "the sets hold no anchor"),
        (
            make_predictions(),
            {"a/05.jpg": ["b/04.jpg"]},
            LABELS,
            "1 neighbour.* another video .* b/04.jpg in the set of a/05",
        ),
        (make_predictions(), {"a/last.jpg": []}, LABELS, "'a/last.jpg': the file name of a frame must hold its number"),
        (make_predictions(), {"a/05.jpg": "a/04.jpg"}, LABELS, "a/05.jpg: its set must be a list of frames"),
    ],
)
def test_invalid_inputs_are_refused(scores: dict, sets: dict, labels: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pm_k(scores, sets, labels)


@pytest.mark.parametrize("k", [-1, 2.5, True, 10**9])
def test_invalid_k_is_refused(k: int) -> None:
    with pytest.raises(BadValue, match="k must be a whole number of frames from 0 to 100000"):
        pm_k(make_predictions(), SETS, LABELS, k)


def test_sets_without_a_frame_type() -> None:
    types = dict.fromkeys(FRAMES, "P") | {"a/05.jpg": "I", "b/04.jpg": "B", "b/08.jpg": "b"}
    assert list(without_frame_types(SETS, types, "i")) == ["b/05.jpg", "c/01.jpg"]
    assert without_frame_types(SETS, types, "B") == {"a/05.jpg": SETS["a/05.jpg"], "c/01.jpg": []}
    assert without_frame_types(SETS, types, "p") == {}  # the set of a has no other frame
    with pytest.raises(BadValue, match="drop must be 'i', 'p' or 'b', got 'x'"):
        without_frame_types(SETS, types, "x")
    with pytest.raises(DataError, match="7 of 8 frames have no type"):
        without_frame_types(SETS, {"a/05.jpg": "I"}, "i")


def test_reviewed_pairs_and_anchors() -> None:
    names = ["similar", "Dont know", "blur-increase", "bad-anchor", "exciting"]
    pairs = {
        "labels": names,
        "annotations": [
            {"key": "a/5.jpg,a/4.jpg", "labels": [0, 4], "notes": ""},
            {"key": "a/5.jpg,a/6.jpg", "labels": [0, 1]},
            {"key": "a/5.jpg,a/7.jpg", "labels": [0]},
            {"key": "a/5.jpg,a/7.jpg", "labels": [0, 2]},
            {"key": "a/5.jpg,a/8.jpg", "labels": []},
            {"key": "b/5.jpg,b/6.jpg", "labels": [0]},
            {"key": "b/5.jpg,b/7.jpg", "labels": [3]},
            {"key": "c/5.jpg,c/6.jpg", "labels": [0]},
        ],
    }
    anchors = {
        "labels": ["good", "bad", "unsure"],
        "annotations": [
            {"key": "a/5.jpg", "labels": [1]},
            {"key": "a/5.jpg", "labels": [0]},
            {"key": "b/5.jpg", "labels": [0]},
            {"key": "c/5.jpg", "labels": [0, 2]},
        ],
    }
    assert valid_pairs(pairs) == [("a/5.jpg", "a/4.jpg"), ("b/5.jpg", "b/6.jpg"), ("c/5.jpg", "c/6.jpg")]
    assert valid_anchors(anchors, pairs) == ["a/5.jpg"]
    assert reviewed_sets(anchors, pairs) == {"a/5.jpg": ["a/4.jpg"]}
    with pytest.raises(DataError, match="this one is not: IndexError"):
        valid_pairs({"labels": [], "annotations": [{"key": "a,b", "labels": [0]}]})
    with pytest.raises(DataError, match="'a': the key of a pair must be 'anchor,neighbour'"):
        valid_pairs({"labels": ["similar"], "annotations": [{"key": "a", "labels": [0]}]})
