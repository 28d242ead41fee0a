"""Viewer pages of a mended run: its title and the frames that were detected as damaged."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from jostle.evaluation.results.record import RunRecord

CELL = "thumos14-c-black_frame-3"


def test_detected_frames_are_listed_for_mended_runs_only(client: TestClient, runs: dict[str, Path]) -> None:
    page = client.get(f"/runs/mended/cells/{CELL}/videos/a.json").json()
    detected = RunRecord.read(runs["mended"]).found_struck("a", "thumos14-c/black_frame:3")
    assert detected
    assert page["found_struck"] == [list(span) for span in detected]
    assert client.get("/runs/mended/cells/clean/videos/a.json").json()["found_struck"] == []
    assert client.get(f"/runs/detection/cells/{CELL}/videos/a.json").json()["found_struck"] is None


def test_mended_run_is_labelled_as_mended(client: TestClient) -> None:
    assert client.get("/runs/mended.json").json()["run"]["model"] == "leaning, mended (known)"
    assert client.get("/runs/detection.json").json()["run"]["model"] == "leaning"
