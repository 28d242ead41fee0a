"""NMS and voting against the original compiled code and a reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.by_rule import DETECTORS, VIDEOS, stored
from jostle.errors import BadValue
from jostle.models.detection.nms import hard_nms, soft_nms, vote

EVERY = 10**6
PUBLISHED = {"sigma": 0.5, "min_score": 0.001}
# name, sigma, maximum count, voting threshold, weight
AGNOSTIC = (
    ("agnostic_af", 0.75, 100, 0.9, "score*iou"),
    ("agnostic_td", 0.70, 200, 0.95, "score"),
    ("agnostic_af_vote07", 0.5, 200, 0.7, "score*iou"),
    ("agnostic_td_vote07", 0.5, 200, 0.7, "score"),
)


def golden(name: str) -> tuple[Any, tuple[Any, Any, Any]]:
    data = stored(f"nms/{name}.npz")
    if name == "corner":
        data = {key.removeprefix("mixed_"): data[key] for key in data}
    return data, (data["segments"], data["scores"], data["labels"])


def assert_equal_to_golden(result: tuple[Any, Any, Any], data: Any, name: str) -> None:
    np.testing.assert_array_equal(result[0], data[f"{name}_segments"])
    np.testing.assert_allclose(result[1], data[f"{name}_scores"], rtol=1e-6)
    if f"{name}_labels" in data:
        np.testing.assert_array_equal(result[2], data[f"{name}_labels"])


@pytest.mark.parametrize("name", ["50", "500", "3000", "corner"])
class TestGolden:
    def test_soft(self, name: str) -> None:
        data, candidates = golden(name)
        result = soft_nms(*candidates, **PUBLISHED, max_segments=EVERY, multiclass=False)
        assert_equal_to_golden(result, data, "soft")
        np.testing.assert_array_equal(result[2], candidates[2][data["soft_index"]])

    @pytest.mark.parametrize("count", [200, 2000])
    def test_soft_by_class(self, name: str, count: int) -> None:
        data, candidates = golden(name)
        assert_equal_to_golden(soft_nms(*candidates, **PUBLISHED, max_segments=count), data, f"multiclass_{count}")

    @pytest.mark.parametrize("case", AGNOSTIC, ids=lambda case: case[0])
    def test_soft_then_vote(self, name: str, case: Any) -> None:
        data, candidates = golden(name)
        key, sigma, count, threshold, weight = case
        segments, scores, labels = soft_nms(
            *candidates, sigma=sigma, min_score=0.001, max_segments=count, multiclass=False
        )
        voted = vote(segments, *candidates[:2], threshold=threshold, weight=weight)
        expected = data[f"{key}_segments"]
        is_defined = ~np.isnan(expected).any(1)  # the originals divide 0 by 0 for a segment of no length
        np.testing.assert_allclose(voted[is_defined], expected[is_defined], atol=1e-3)
        np.testing.assert_array_equal(voted[~is_defined], segments[~is_defined])
        np.testing.assert_allclose(scores, data[f"{key}_scores"], rtol=1e-6)
        np.testing.assert_array_equal(labels, data[f"{key}_labels"])

    @pytest.mark.parametrize("threshold", [0.1, 0.5])
    def test_hard(self, name: str, threshold: float) -> None:
        data, candidates = golden(name)
        result = hard_nms(*candidates, threshold=threshold, max_segments=EVERY, multiclass=False)
        index = data[f"hard_index_{threshold}"]
        for column, expected in zip(result, candidates, strict=True):
            np.testing.assert_array_equal(column, expected[index])

    def test_hard_by_class(self, name: str) -> None:
        data, candidates = golden(name)
        assert_equal_to_golden(
            hard_nms(*candidates, threshold=0.1, max_segments=200, min_score=0.001), data, "hard_multiclass"
        )


@pytest.mark.parametrize("name", ["50", "500", "3000"])
@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9])
@pytest.mark.parametrize(("key", "weight"), [("af", "score*iou"), ("td", "score")])
def test_vote(name: str, threshold: float, key: str, weight: Any) -> None:
    data, (segments, scores, _) = golden(name)
    voted = vote(segments[data["vote_index"]], segments, scores, threshold=threshold, weight=weight)
    np.testing.assert_allclose(voted, data[f"vote_{key}_{threshold}"], atol=1e-3)


@pytest.mark.parametrize("video", VIDEOS)
@pytest.mark.parametrize("detector", DETECTORS)
def test_final_segments_of_the_originals(detector: str, video: str) -> None:
    golden = stored(f"detectors/{detector}.npz")
    data = {key.removeprefix(f"{video}_"): value for key, value in golden.items() if key.startswith(video)}
    segments, scores, labels = soft_nms(
        data["pre_nms_segments"],
        data["pre_nms_scores"],
        data["pre_nms_labels"],
        **PUBLISHED,
        max_segments=2000 if detector == "tridet" else 200,
    )
    seconds = np.clip((segments * 4 + 8) / 30, 0, VIDEOS[video][2])
    np.testing.assert_allclose(seconds, data["pred_segments"], atol=1e-5)
    np.testing.assert_allclose(scores, data["pred_scores"], rtol=1e-6)
    np.testing.assert_array_equal(labels, data["pred_labels"])


def test_single_weak_candidate_is_kept() -> None:
    segments, scores, labels = soft_nms([[10, 15]], [2e-4], [3], **PUBLISHED, max_segments=5)
    assert segments.tolist() == [[10, 15]]
    assert labels.tolist() == [3]
    assert scores[0] == np.float32(2e-4)


def test_empty_input_gives_empty_output() -> None:
    none: list[float] = []
    for result in (
        soft_nms(np.empty((0, 2)), none, none, **PUBLISHED, max_segments=5),
        hard_nms(np.empty((0, 2)), none, none, threshold=0.5, max_segments=5),
    ):
        assert [column.shape for column in result] == [(0, 2), (0,), (0,)]
        assert result[2].dtype == np.int64
    assert vote(np.empty((0, 2)), np.empty((0, 2)), none, threshold=0.5, weight="score").shape == (0, 2)


def test_equal_scores_keep_the_input_order() -> None:
    segments = [[i * 10, i * 10 + 1] for i in range(9)]
    for result in (
        soft_nms(segments, [0.5] * 9, [0] * 9, **PUBLISHED, max_segments=9),
        hard_nms(segments, [0.5] * 9, [0] * 9, threshold=0.5, max_segments=9),
    ):
        assert result[0].tolist() == segments


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scores": [0.5, np.nan]}, "not a finite number"),
        ({"segments": [[0, np.inf], [1, 2]]}, "not a finite number"),
        ({"labels": [0, -1]}, "class numbers from 0, not -1"),
        ({"scores": [0.5]}, r"2 segments have \(1,\) scores"),
        ({"sigma": 0.0}, "sigma must be above 0, not 0.0"),
        ({"max_segments": 0}, "max_segments must be at least 1, not 0"),
    ],
)
def test_invalid_input_is_refused(changed: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"segments": [[0, 1], [1, 2]], "scores": [0.5, 0.4], "labels": [0, 0], "sigma": 0.5}
    with pytest.raises(BadValue, match=message):
        soft_nms(**{**arguments, "min_score": 0.001, "max_segments": 5, **changed})


def test_unknown_weight_is_refused() -> None:
    with pytest.raises(BadValue, match="no weight is called 'iou'"):
        vote([[0, 1]], [[0, 1]], [0.5], threshold=0.5, weight="iou")  # type: ignore[arg-type]


def reference_soft_nms(
    segments: Any, scores: Any, labels: Any, *, sigma: float, min_score: float, most: int
) -> list[Any]:
    """Soft-NMS as stated in its paper, in double precision."""
    rows: list[tuple[float, int]] = []
    for label in set(labels.tolist()):
        left = {i: float(scores[i]) for i in np.flatnonzero(labels == label)}
        while left:
            best = max(left, key=lambda i: (left[i], -i))
            rows.append((-left.pop(best), best))
            for i in list(left):
                inter = max(0, min(segments[best, 1], segments[i, 1]) - max(segments[best, 0], segments[i, 0]))
                lengths = segments[best, 1] - segments[best, 0] + segments[i, 1] - segments[i, 0] + 2e-6
                left[i] *= np.exp(-((inter / (lengths - inter)) ** 2) / sigma)
                if left[i] < min_score:
                    del left[i]
    return sorted(rows)[:most]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 80), classes=st.integers(1, 5), most=st.integers(1, 60))
def test_soft_nms_equals_the_reference(seed: int, count: int, classes: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 50, count)
    segments = np.stack([start, start + rng.gamma(2, 5, count)], 1).astype(np.float32).astype(float)
    scores, labels = rng.random(count).astype(np.float32), rng.integers(0, classes, count)
    result = soft_nms(segments, scores, labels, sigma=0.5, min_score=0.01, max_segments=most)
    expected = reference_soft_nms(segments, scores, labels, sigma=0.5, min_score=0.01, most=most)
    np.testing.assert_allclose(result[1], [-score for score, _ in expected], rtol=2e-5)
    assert (np.diff(result[1]) <= 0).all()
    if len({round(score, 4) for score, _ in expected}) == len(expected):  # no near ties
        np.testing.assert_array_equal(result[2], labels[[row for _, row in expected]])


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 60), threshold=st.floats(0.05, 0.95))
def test_hard_nms_is_idempotent(seed: int, count: int, threshold: float) -> None:
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 30, count)
    segments = np.stack([start, start + rng.gamma(2, 5, count)], 1)
    once = hard_nms(segments, rng.random(count), rng.integers(0, 3, count), threshold=threshold, max_segments=EVERY)
    twice = hard_nms(*once, threshold=threshold, max_segments=EVERY)
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a, b)
