"""pm-k on small sets made by hand; the real sets are in tests/reference."""

from __future__ import annotations

import json

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


def answers(**wrong: int) -> dict[str, int]:
    """Class 0 for every frame but these, written `a03=1`."""
    return {frame: wrong.get(frame[0] + frame[2:4], 0) for frame in FRAMES}


def alike(scores: list[float]) -> dict[str, list[float]]:
    return dict.fromkeys(FRAMES, scores)


def test_one_wrong_neighbour_costs_the_anchor_from_its_distance_on() -> None:
    found = pm_k(answers(a03=1), SETS, LABELS, 3)
    assert found.correct_by_radius == (3, 3, 2, 2)
    assert (found.accuracy, found.pm_k, found.drop) == (1.0, 2 / 3, 1 / 3)
    assert pm_k(answers(a03=1), SETS, LABELS, 1).pm_k == 1.0
    assert pm_k(answers(a03=1), SETS, LABELS, 0).pm_k == 1.0


def test_a_wrong_anchor_counts_unless_it_is_left_out() -> None:
    scores = answers(a05=1, c01=1)
    assert pm_k(scores, SETS, LABELS).pm_k == 1 / 3
    outside = pm_k(scores, SETS, LABELS, include_anchor=False)
    assert outside.accuracy == 1 / 3
    assert outside.pm_k == 2 / 3  # the set of c is empty, so its anchor decides
    assert outside.correct_by_radius == (1, *[2] * 10)


def test_counts_by_offset() -> None:
    found = pm_k(answers(a05=1, a04=1, b04=1), SETS, LABELS)
    assert found.by_offset == {
        -2: OffsetCount(1, 0, 0, 0),
        -1: OffsetCount(2, 2, 1, 1),
        1: OffsetCount(1, 0, 0, 0),
        3: OffsetCount(1, 0, 1, 0),
    }
    assert found.error_by_offset == {-2: 0.0, -1: 1.0, 1: 0.0, 3: 0.0}
    assert (found.pairs, found.neighbours_median) == (5, 2.0)


def test_labels_of_the_anchor_or_the_frame_itself() -> None:
    labels = LABELS | {"a/03.jpg": [1], "b/08.jpg": [0, 1]}
    scores = answers(a03=1, b08=1)
    assert pm_k(scores, SETS, labels).pm_k == 1.0
    assert pm_k(scores, SETS, labels, labels_of="anchor").pm_k == 1 / 3
    anchors_only = dict.fromkeys(SETS, 0)
    assert pm_k(scores, SETS, anchors_only, labels_of="anchor").pm_k == 1 / 3


def test_scores_of_classes_and_the_first_of_equal_ones() -> None:
    scores = {frame: np.array([1.0, 1.0, -np.inf]) for frame in FRAMES}
    assert pm_k(scores, SETS, LABELS).pm_k == 1.0
    assert pm_k(scores, SETS, dict.fromkeys(FRAMES, 1)).pm_k == 0.0


def test_json_has_the_promised_keys() -> None:
    made = json.loads(json.dumps(pm_k(answers(), SETS, LABELS, 2).to_dict()))
    first = ["format", "k", "anchors", "accuracy", "accuracy_interval", "pm_k", "pm_k_interval", "drop"]
    assert list(made)[:9] == [*first, "error_by_offset"]
    assert made["format"] == 1
    assert made["error_by_offset"] == {"-2": 0.0, "-1": 0.0, "1": 0.0}
    assert len(made["pm_k_interval"]) == 2


def test_frames_beyond_k_need_neither_scores_nor_labels() -> None:
    scores = {frame: 0 for frame in FRAMES if frame not in ("a/03.jpg", "b/08.jpg")}
    assert pm_k(scores, SETS, dict.fromkeys(scores, 0), 1).pm_k == 1.0


def test_the_anchor_and_repeats_in_a_set_do_not_count() -> None:
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
def test_frame_numbers(key: str, video: str, number: int) -> None:
    assert frame_number(key) == (video, number)


@pytest.mark.parametrize(
    ("scores", "sets", "labels", "message"),
    [
        ({}, SETS, LABELS, "8 of 8 frames have no scores, the first: a/05.jpg, b/05.jpg, c/01.jpg, ...; give every"),
        (answers(), SETS, {"a/05.jpg": [0]}, "7 of 8 frames have no labels, the first: b/05.jpg, c/01.jpg"),
        (answers(), SETS, LABELS | {"b/04.jpg": []}, "b/04.jpg has no label at all; every label must be a whole"),
        (alike([0.0, 1.0]), SETS, LABELS | {"b/04.jpg": 2}, "label 2; every .* a class from 0 to 1"),
        (answers() | {"b/04.jpg": [1, 2]}, SETS, LABELS, "a/05.jpg has one class but b/04.jpg has 2 scores"),
        (alike([0, np.nan]), SETS, LABELS, "8 of 8 frames have NaN scores or no finite best one"),
        (alike([-np.inf]), SETS, LABELS, "no finite best one, the first: a/05.jpg"),
        (alike([]), SETS, LABELS, "a/05.jpg has no scores of any class"),
        (dict.fromkeys(FRAMES, 0.5), SETS, LABELS, "must be a whole number from 0; give class numbers or scores"),
        (answers(), {}, LABELS, "the sets hold no anchor"),
        (answers(), {"a/05.jpg": ["b/04.jpg"]}, LABELS, "1 neighbour.* another video .* b/04.jpg in the set of a/05"),
        (answers(), {"a/last.jpg": []}, LABELS, "'a/last.jpg': the file name of a frame must hold its number"),
        (answers(), {"a/05.jpg": "a/04.jpg"}, LABELS, "a/05.jpg: its set must be a list of frames"),
    ],
)
def test_what_cannot_be_scored_is_named(scores: dict, sets: dict, labels: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pm_k(scores, sets, labels)


@pytest.mark.parametrize("k", [-1, 2.5, True, 10**9])
def test_k_is_a_number_of_frames(k: int) -> None:
    with pytest.raises(BadValue, match="k must be a whole number of frames from 0 to 100000"):
        pm_k(answers(), SETS, LABELS, k)


def test_frame_types() -> None:
    types = dict.fromkeys(FRAMES, "P") | {"a/05.jpg": "I", "b/04.jpg": "B", "b/08.jpg": "b"}
    assert list(without_frame_types(SETS, types, "i")) == ["b/05.jpg", "c/01.jpg"]
    assert without_frame_types(SETS, types, "B") == {"a/05.jpg": SETS["a/05.jpg"], "c/01.jpg": []}
    assert without_frame_types(SETS, types, "p") == {}  # the set of a has no other frame
    with pytest.raises(BadValue, match="drop must be 'i', 'p' or 'b', got 'x'"):
        without_frame_types(SETS, types, "x")
    with pytest.raises(DataError, match="7 of 8 frames have no type"):
        without_frame_types(SETS, {"a/05.jpg": "I"}, "i")


def test_review_rules() -> None:
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
