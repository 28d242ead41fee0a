"""Viewer pages of question and moment runs: answers with probabilities, windows on a timeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.synthetic_runs import write_run
from jostle.reporting.viewer.pages import run_page
from jostle.reporting.viewer.runs import RunCollection, Snapshot
from jostle.reporting.viewer.video_page import video_page

BLUR = "thumos14-c/motion_blur:3"


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Snapshot]:
    root = tmp_path_factory.mktemp("runs")
    runs = RunCollection([write_run(root / task, task, videos=6, cells=(BLUR,)) for task in ("questions", "moments")])
    snapshots_by_key = {key: runs.run(key) for key in ("questions", "moments")}
    return {key: run for key, run in snapshots_by_key.items() if isinstance(run, Snapshot)}


def through_json(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page as a browser receives it, after a JSON round trip."""
    content: dict[str, Any] = json.loads(json.dumps(page, allow_nan=False))
    return content


def test_questions_have_their_options_and_probabilities(snapshots: dict[str, Snapshot]) -> None:
    snapshot = snapshots["questions"]
    questions = through_json(video_page(snapshot, BLUR, "video_0002"))["questions"]
    assert len(questions) == 3
    stored = json.loads((Path(snapshot.record.folder) / "predictions" / "clean.json").read_text())
    for question in questions:
        assert question["options"] == ["jump", "run", "sit down"]
        assert question["clean"]["probabilities"] == stored[question["id"]]["probabilities"]
        assert question["clean"]["right"] == (question["clean"]["choice"] == question["answer"])
    assert "actions" not in through_json(video_page(snapshot, BLUR, "video_0002"))


def test_windows_are_on_a_timeline_with_the_scored_one_marked(snapshots: dict[str, Snapshot]) -> None:
    page = through_json(video_page(snapshots["moments"], BLUR, "video_0001"))
    assert (page["duration"], page["tiou"], page["tious"]) == (24.0, 0.5, [0.3, 0.5, 0.7])
    assert [action["label"] for action in page["actions"]] == ["Sentence 0.", "Sentence 1."]
    for side in ("clean", "corrupted"):
        assert sorted(one["label"] for one in page[side] if one["first"]) == ["Sentence 0.", "Sentence 1."]
        assert len(page[side]) == 4
    strict = through_json(video_page(snapshots["moments"], BLUR, "video_0001", tiou=0.99))
    assert not any(one["kind"] == "true_positive" for one in strict["clean"])
    assert through_json(video_page(snapshots["moments"], "clean", "video_0001"))["corrupted"] == []


def test_run_page_has_chance_and_baselines(snapshots: dict[str, Snapshot]) -> None:
    assert (
        through_json(run_page(snapshots["questions"]))["chance"]
        == "chance 33.3, without video 33.3, with one frame 33.3"
    )
    assert through_json(run_page(snapshots["moments"]))["chance"].startswith(
        "whole video as window 50.0, with one frame"
    )
