"""Pages of videos of questions and moments: answers with probabilities, and windows on a timeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.made_runs import made_run
from jostle.reporting.viewer.pages import run_page, video_page
from jostle.reporting.viewer.runs import RunCollection, Snapshot

BLUR = "thumos14-c/motion_blur:3"


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Snapshot]:
    root = tmp_path_factory.mktemp("runs")
    runs = RunCollection([made_run(root / task, task, videos=6, cells=(BLUR,)) for task in ("questions", "moments")])
    found = {key: runs.run(key) for key in ("questions", "moments")}
    return {key: run for key, run in found.items() if isinstance(run, Snapshot)}


def plain(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page as a browser gets it."""
    content: dict[str, Any] = json.loads(json.dumps(page, allow_nan=False))
    return content


def test_questions_have_their_options_and_probabilities(snapshots: dict[str, Snapshot]) -> None:
    snapshot = snapshots["questions"]
    questions = plain(video_page(snapshot, BLUR, "video_0002"))["questions"]
    assert len(questions) == 3
    stored = json.loads((Path(snapshot.record.folder) / "predictions" / "clean.json").read_text())
    for one in questions:
        assert one["options"] == ["jump", "run", "sit down"]
        assert one["clean"]["probabilities"] == stored[one["id"]]["probabilities"]
        assert one["clean"]["right"] == (one["clean"]["choice"] == one["answer"])
    assert "actions" not in plain(video_page(snapshot, BLUR, "video_0002"))


def test_windows_lie_on_a_timeline_with_the_one_that_counts_marked(snapshots: dict[str, Snapshot]) -> None:
    page = plain(video_page(snapshots["moments"], BLUR, "video_0001"))
    assert (page["duration"], page["tiou"], page["tious"]) == (24.0, 0.5, [0.3, 0.5, 0.7])
    assert [action["label"] for action in page["actions"]] == ["Sentence 0.", "Sentence 1."]
    for side in ("clean", "corrupted"):
        assert sorted(one["label"] for one in page[side] if one["first"]) == ["Sentence 0.", "Sentence 1."]
        assert len(page[side]) == 4
    strict = plain(video_page(snapshots["moments"], BLUR, "video_0001", tiou=0.99))
    assert not any(one["kind"] == "true_positive" for one in strict["clean"])
    assert plain(video_page(snapshots["moments"], "clean", "video_0001"))["corrupted"] == []


def test_a_run_has_chance_and_baselines_beside_its_clean_score(snapshots: dict[str, Snapshot]) -> None:
    assert plain(run_page(snapshots["questions"]))["chance"] == "chance 33.3, without video 33.3, with one frame 33.3"
    assert plain(run_page(snapshots["moments"]))["chance"].startswith("whole video as window 50.0, with one frame")
