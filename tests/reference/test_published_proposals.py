"""AR-AN against ActivityNet's toolkit on its own sample submission."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.metrics.proposals import average_recall
from jostle.types import Predictions, Truth

# Every score of the sample is 1. The toolkit's sort, reversed, puts the later of equal scores first, but only up to 17
# of them; the two videos with 18 come out in the reverse of this order. Distinct scores make the order ours too.
SORTED_18 = [0, *range(15, 0, -1), 16, 17]
GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "diagnosis"
pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason="no golden data at ../shared/golden/diagnosis")


def load(name: str) -> Any:
    return json.loads(gzip.decompress((GOLDEN / "inputs" / name).read_bytes()))


@pytest.fixture(scope="module")
def sample() -> tuple[Predictions, Truth]:
    database = load("gt_anet13_val.json.gz")["database"]
    rows = [(v, *note["segment"]) for v, video in enumerate(database.values()) for note in video["annotations"]]
    video, start, end = zip(*rows, strict=True)
    truth = Truth(tuple(database), ("any",), video, start, end, [0] * len(rows))
    results = load("pred_sample_anet13.json.gz")["results"]
    found = [(v, *p["segment"], p["score"]) for v, video in enumerate(results.values()) for p in video]
    video, start, end, score = zip(*found, strict=True)
    return Predictions(tuple(results), ("any",), video, start, end, [0] * len(found), score), truth


def published(asked: str) -> Any:
    return json.loads((GOLDEN / "out" / "anet.prop.sample_anet13.json").read_bytes())["runs"][asked]


def number(asked: str) -> float | None:
    return None if asked == "None" else float(asked)


@pytest.mark.parametrize("asked", ["None", "100", "50", "10"])
def test_the_toolkit_s_curve(sample: tuple[Predictions, Truth], asked: str) -> None:
    proposals, truth = sample
    score = np.zeros(len(proposals))
    for video in range(len(proposals.videos)):
        rows = np.flatnonzero(proposals.video == video)
        score[rows[SORTED_18] if len(rows) == 18 else rows] = np.arange(len(rows))
    wanted = published(asked)
    found = average_recall(replace(proposals, score=score), truth, average_proposals=number(asked))
    assert (found.instances, found.proposals) == (7654, 7654)
    assert 100 * found.area == pytest.approx(wanted["auc_percent"], abs=1e-9)
    for name, values in (
        ("avg_recall", found.average_recall),
        ("proposals_per_video", found.average_number),
        ("recall", found.recall),
    ):
        np.testing.assert_allclose(values, wanted[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("asked", ["None", "100", "50", "10"])
def test_ties_move_it_by_next_to_nothing(sample: tuple[Predictions, Truth], asked: str) -> None:
    found = average_recall(*sample, average_proposals=number(asked))
    assert 100 * found.area == pytest.approx(published(asked)["auc_percent"], abs=0.02)
