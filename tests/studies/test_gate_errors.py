"""The gate at its limit: wrong decisions are no more frequent than their level allows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from studies.gate_errors import CONDITIONS, METRICS, VIDEOS, count_wrong, most_allowed, table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("videos", [3, 20])
def test_models_at_their_limit_seldom_pass(condition: str, videos: int) -> None:
    repeats = 200
    passed, failed = count_wrong("accuracy of answers", condition, videos, repeats)
    assert max(passed, failed) / repeats <= most_allowed(repeats)


def test_detectors_at_their_limit_seldom_pass() -> None:
    passed, failed = count_wrong("mAP of detections", "cell", 12, 60)
    assert max(passed, failed) / 60 <= most_allowed(60)


def test_page_has_the_table_of_the_study() -> None:
    rows = [json.loads(line) for line in (ROOT / "studies" / "gate_errors.jsonl").read_text().splitlines()]
    assert len(rows) == len(METRICS) * len(CONDITIONS) * len(VIDEOS)
    assert all(row["passed"] / row["repeats"] <= most_allowed(row["repeats"]) for row in rows)
    assert table(rows) in (ROOT / "docs" / "intervals.md").read_text()
