"""AR-AN against ActivityNet's toolkit on made detections, and on its own sample submission."""

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
# of them; the two videos with 18 come out in the reverse of this order. Distinct scores make the order ours too.
SORTED_18 = [0, *range(15, 0, -1), 16, 17]
HERE = Path(__file__).resolve().parents[1] / "golden" / "diagnosis"
GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "diagnosis"
beside = pytest.mark.skipif(not GOLDEN.is_dir(), reason="real annotations are their owners': none at ../shared/golden")


def load(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def without_classes(truth: Path, predictions: Path) -> tuple[Predictions, Truth]:
    """Proposals and actions of one class, as the toolkit's proposal task reads them."""
    database = load(truth)["database"]
    rows = [(v, *note["segment"]) for v, video in enumerate(database.values()) for note in video["annotations"]]
    video, start, end = zip(*rows, strict=True)
    actions = Truth(tuple(database), ("any",), video, start, end, [0] * len(rows))
    results = load(predictions)["results"]
    found = [(v, *p["segment"], p["score"]) for v, video in enumerate(results.values()) for p in video]
    video, start, end, score = zip(*found, strict=True)
    return Predictions(tuple(results), ("any",), video, start, end, [0] * len(found), score), actions


@pytest.fixture(scope="module")
def sample() -> tuple[Predictions, Truth]:
    return without_classes(
        GOLDEN / "inputs" / "gt_anet13_val.json.gz", GOLDEN / "inputs" / "pred_sample_anet13.json.gz"
    )


def published(asked: str) -> Any:
    return json.loads((GOLDEN / "out" / "anet.prop.sample_anet13.json").read_bytes())["runs"][asked]


def number(asked: str) -> float | None:
    return None if asked == "None" else float(asked)


def check_curve(proposals: Predictions, truth: Truth, asked: str, wanted: Any) -> None:
    found = average_recall(proposals, truth, average_proposals=number(asked))
    assert 100 * found.area == pytest.approx(wanted["auc_percent"], abs=1e-9)
    for name, values in (
        ("avg_recall", found.average_recall),
        ("proposals_per_video", found.average_number),
        ("recall", found.recall),
    ):
        np.testing.assert_allclose(values, wanted[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["made_thumos14", "made_activitynet"])
@pytest.mark.parametrize("asked", ["None", "100", "50", "10"])
def test_the_toolkit_s_curve_of_made_detections(name: str, asked: str) -> None:
    wanted = load(HERE / f"{name}.json.gz")["proposals"][asked]
    check_curve(*without_classes(HERE / f"{name}.gt.json.gz", HERE / f"{name}.pred.json.gz"), asked, wanted)


@beside
@pytest.mark.parametrize("asked", ["None", "100", "50", "10"])
def test_the_toolkit_s_curve_of_its_sample(sample: tuple[Predictions, Truth], asked: str) -> None:
    proposals, truth = sample
    assert (len(truth), len(proposals)) == (7654, 7654)
    score = np.zeros(len(proposals))
    for video in range(len(proposals.videos)):
        rows = np.flatnonzero(proposals.video == video)
        score[rows[SORTED_18] if len(rows) == 18 else rows] = np.arange(len(rows))
    check_curve(replace(proposals, score=score), truth, asked, published(asked))


@beside
@pytest.mark.parametrize("asked", ["None", "100", "50", "10"])
def test_ties_move_it_by_next_to_nothing(sample: tuple[Predictions, Truth], asked: str) -> None:
    found = average_recall(*sample, average_proposals=number(asked))
    assert 100 * found.area == pytest.approx(published(asked)["auc_percent"], abs=0.02)
