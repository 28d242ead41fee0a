"""AR-AN against the ActivityNet toolkit on generated detections and on its sample submission."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.core.types import Predictions, Truth
from jostle.metrics.proposals import average_recall

# Every score of the sample is 1. The toolkit's sort, reversed, puts the later of equal scores first, but only up to 17
# of them; the two videos with 18 are sorted in the reverse of this order. Distinct scores give us the same order.
SORTED_18 = [0, *range(15, 0, -1), 16, 17]
HERE = Path(__file__).resolve().parents[1] / "golden" / "diagnosis"
GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "diagnosis"
needs_shared_golden = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="real annotations are their owners': none at ../shared/golden"
)


def load(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def without_classes(truth: Path, predictions: Path) -> tuple[Predictions, Truth]:
    """Load proposals and actions as a single class, as the proposal task of the toolkit does."""
    database = load(truth)["database"]
    rows = [(v, *note["segment"]) for v, video in enumerate(database.values()) for note in video["annotations"]]
    video, start, end = zip(*rows, strict=True)
    actions = Truth(tuple(database), ("any",), video, start, end, [0] * len(rows))
    results = load(predictions)["results"]
    proposals = [(v, *p["segment"], p["score"]) for v, video in enumerate(results.values()) for p in video]
    video, start, end, score = zip(*proposals, strict=True)
    return Predictions(tuple(results), ("any",), video, start, end, [0] * len(proposals), score), actions


@pytest.fixture(scope="module")
def sample() -> tuple[Predictions, Truth]:
    return without_classes(
        GOLDEN / "inputs" / "gt_anet13_val.json.gz", GOLDEN / "inputs" / "pred_sample_anet13.json.gz"
    )


def load_published(average_proposals: str) -> Any:
    return json.loads((GOLDEN / "out" / "anet.prop.sample_anet13.json").read_bytes())["runs"][average_proposals]


def parse_number(average_proposals: str) -> float | None:
    return None if average_proposals == "None" else float(average_proposals)


def check_curve(proposals: Predictions, truth: Truth, average_proposals: str, expected: Any) -> None:
    result = average_recall(proposals, truth, average_proposals=parse_number(average_proposals))
    assert 100 * result.area == pytest.approx(expected["auc_percent"], abs=1e-9)
    for name, values in (
        ("avg_recall", result.average_recall),
        ("proposals_per_video", result.average_number),
        ("recall", result.recall),
    ):
        np.testing.assert_allclose(values, expected[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["made_thumos14", "made_activitynet"])
@pytest.mark.parametrize("average_proposals", ["None", "100", "50", "10"])
def test_curve_of_generated_detections_equals_the_toolkit(name: str, average_proposals: str) -> None:
    expected = load(HERE / f"{name}.json.gz")["proposals"][average_proposals]
    check_curve(
        *without_classes(HERE / f"{name}.gt.json.gz", HERE / f"{name}.pred.json.gz"), average_proposals, expected
    )


@needs_shared_golden
@pytest.mark.parametrize("average_proposals", ["None", "100", "50", "10"])
def test_curve_of_the_sample_submission_equals_the_toolkit(
    sample: tuple[Predictions, Truth], average_proposals: str
) -> None:
    proposals, truth = sample
    assert (len(truth), len(proposals)) == (7654, 7654)
    score = np.zeros(len(proposals))
    for video in range(len(proposals.videos)):
        rows = np.flatnonzero(proposals.video == video)
        score[rows[SORTED_18] if len(rows) == 18 else rows] = np.arange(len(rows))
    check_curve(replace(proposals, score=score), truth, average_proposals, load_published(average_proposals))


@needs_shared_golden
@pytest.mark.parametrize("average_proposals", ["None", "100", "50", "10"])
def test_ties_change_the_area_only_slightly(sample: tuple[Predictions, Truth], average_proposals: str) -> None:
    result = average_recall(*sample, average_proposals=parse_number(average_proposals))
    assert 100 * result.area == pytest.approx(load_published(average_proposals)["auc_percent"], abs=0.02)
