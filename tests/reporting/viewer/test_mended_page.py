"""The pages of a mended run: they say so, and which frames were found."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from jostle.reporting.analysis.record import RunRecord

CELL = "thumos14-c-black_frame-3"


def test_found_frames_are_told_where_a_run_was_mended(client: TestClient, runs: dict[str, Path]) -> None:
    told = client.get(f"/runs/mended/cells/{CELL}/videos/a.json").json()
    found = RunRecord.read(runs["mended"]).found_struck("a", "thumos14-c/black_frame:3")
    assert found
    assert told["found_struck"] == [list(one) for one in found]
    assert client.get("/runs/mended/cells/clean/videos/a.json").json()["found_struck"] == []
    assert client.get(f"/runs/detection/cells/{CELL}/videos/a.json").json()["found_struck"] is None


def test_a_mended_run_is_called_so(client: TestClient) -> None:
    assert client.get("/runs/mended.json").json()["run"]["model"] == "leaning, mended (known)"
    assert client.get("/runs/detection.json").json()["run"]["model"] == "leaning"
