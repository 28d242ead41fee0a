from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.core.types import Predictions, Truth
from jostle.errors import BadValue, DataError
from jostle.metrics.proposals import average_recall

TIOUS = np.linspace(0.5, 0.95, 10)


def random_case(seed: int, videos: int = 7) -> tuple[Predictions, Truth]:
    rng = np.random.default_rng(seed)
    instances, count = 3 * videos, 20 * videos
    start, proposal_start = rng.uniform(0, 90, instances), rng.uniform(0, 90, count)
    truth = Truth(
        tuple(f"v{i}" for i in range(videos)),
        ("a", "b"),
        rng.integers(0, videos - 1, instances),  # the last video has no instance
        start,
        start + rng.uniform(0, 30, instances),
        rng.integers(0, 2, instances),
    )
    proposals = Predictions(
        tuple(f"v{i}" for i in range(1, videos + 2)),  # the first has no proposal, one is unknown
        ("any",),
        rng.integers(0, videos + 1, count),
        proposal_start,
        proposal_start + rng.uniform(-1, 30, count),
        np.zeros(count, np.int32),
        rng.integers(0, 10, count) / 10,
    )
    return proposals, truth


def reference_recall(
    proposals: Predictions, truth: Truth, average_proposals: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute recall (10, 100) and mean numbers of proposals (100,) with plain loops."""
    videos = sorted(set(truth.video.tolist()))
    per_video = len(proposals) / len(videos) if average_proposals is None else average_proposals
    ratio = per_video * len(videos) / len(proposals)
    overlaps = []
    for v in videos:
        rows = [i for i in range(len(proposals)) if proposals.videos[proposals.video[i]] == truth.videos[v]]
        rows.sort(key=lambda i: (proposals.score[i], i), reverse=True)
        rows = rows[: min(int(len(rows) * ratio), len(rows))]
        table = np.zeros((np.count_nonzero(truth.video == v), len(rows)))
        for row, g in enumerate(np.flatnonzero(truth.video == v)):
            for column, i in enumerate(rows):
                low, high = max(truth.start[g], proposals.start[i]), min(truth.end[g], proposals.end[i])
                length = truth.end[g] - truth.start[g] + proposals.end[i] - proposals.start[i]
                table[row, column] = max(0, high - low) / (length - max(0, high - low))
        overlaps.append(table)
    kept_count = sum(table.shape[1] for table in overlaps)
    shares = np.arange(1, 101) / 100 * (per_video * len(videos) / kept_count)
    recall = np.zeros((10, 100))
    for t, tiou in enumerate(TIOUS):
        for j, share in enumerate(shares):
            used = [table[:, : min(int(table.shape[1] * share), table.shape[1])] for table in overlaps]
            recall[t, j] = sum(np.count_nonzero((part >= tiou).any(axis=1)) for part in used) / len(truth)
    return recall, shares * kept_count / len(videos)


@pytest.mark.parametrize("average_proposals", [None, 2.0, 10.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_average_recall_equals_the_reference(seed: int, average_proposals: float | None) -> None:
    proposals, truth = random_case(seed)
    result = average_recall(proposals, truth, average_proposals=average_proposals)
    recall, number = reference_recall(proposals, truth, average_proposals)
    np.testing.assert_allclose(result.recall, recall, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.average_number, number, rtol=0, atol=1e-12)
    area = np.trapezoid(recall.mean(axis=0), number) / number[-1]
    assert result.area == pytest.approx(area, abs=1e-12)


def test_perfect_proposals_have_an_area_of_99() -> None:
    _, truth = random_case(0)
    columns = (truth.video, truth.start, truth.end + 1, truth.label)
    truth = replace(truth, end=truth.end + 1)
    result = average_recall(
        Predictions(truth.videos, truth.classes, *columns, np.ones(len(truth))), truth, average_proposals=1000
    )
    assert result.average_recall[0] == result.average_recall[-1] == 1
    assert result.area == pytest.approx(0.99)


def test_no_proposals_score_zero() -> None:
    _, truth = random_case(0)
    none = Predictions(("v0",), ("any",), [], [], [], [], [])
    for average_proposals in (None, 5.0):
        result = average_recall(none, truth, average_proposals=average_proposals)
        assert (result.area, result.average_recall.max(), result.proposals) == (0, 0, 0)
    result = average_recall(random_case(0)[0], truth, average_proposals=1e-3)  # too small to keep any proposal
    assert result.area == 0


def test_order_of_thresholds_is_kept() -> None:
    proposals, truth = random_case(1)
    falling = average_recall(proposals, truth, tious=TIOUS[::-1])
    np.testing.assert_array_equal(falling.recall[::-1], average_recall(proposals, truth).recall)


def test_invalid_inputs_are_refused() -> None:
    proposals, truth = random_case(0)
    with pytest.raises(DataError, match="the ground truth holds no instance, so recall has no meaning"):
        average_recall(proposals, truth.keep(np.zeros(len(truth), bool)))
    with pytest.raises(BadValue, match="average_proposals must be a number above 0, got 0"):
        average_recall(proposals, truth, average_proposals=0)
    with pytest.raises(BadValue, match=r"thresholds of tIoU lie above 0 and at most at 1, got \[1.5\]"):
        average_recall(proposals, truth, tious=1.5)
