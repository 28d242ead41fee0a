"""Pages of one video: answers, frames, boxes, questions and windows as the run stored them, clean and corrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from jostle.evaluation.results.record import RunRecord
from jostle.io.formats.boxes import read_boxes

BLACK, BLUR = "thumos14-c-black_frame-3", "thumos14-c-motion_blur-3"


def page_of(client: TestClient, run: str, cell: str, video: str, query: str = "") -> dict[str, Any]:
    response = client.get(f"/runs/{run}/cells/{cell}/videos/{video}.json{query}")
    page: dict[str, Any] = json.loads(response.text, parse_constant=pytest.fail)
    return page


def test_scores_of_classes_are_those_of_the_tables(client: TestClient, runs: dict[str, Path]) -> None:
    record = RunRecord.read(runs["recognition"])
    clean, noisy = (record.predictions(cell).scores for cell in ("clean", "ucf101-p/gaussian_noise:2"))
    for i, name in enumerate(record.predictions("clean").names):
        answers = page_of(client, "recognition", "ucf101-p-gaussian_noise-2", name)["answers"]
        for score in answers["scores"]:
            k = record.annotations.classes.index(score["label"])
            assert (score["clean"], score["corrupted"]) == (clean[i, k], noisy[i, k])
            assert score["true"] == (k == record.annotations.label[i])
        assert answers["right_clean"] == (clean[i].argmax() == record.annotations.label[i])
        assert answers["right_corrupted"] == (noisy[i].argmax() == record.annotations.label[i])
        ordered = [score["clean"] for score in answers["scores"]]
        assert ordered == sorted(ordered, reverse=True)


def test_true_class_is_always_included(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.evaluation.tasks.recognition.view.MOST", 1)
    for name in "abcd":
        scores = page_of(client, "recognition", "ucf101-p-gaussian_noise-2", name)["answers"]["scores"]
        assert sum(score["true"] for score in scores) == 1
        assert len(scores) <= 3


def test_frames_are_compared_with_their_labels(client: TestClient, runs: dict[str, Path]) -> None:
    table = RunRecord.read(runs["frames"]).predictions("clean")
    predicted = dict(zip(table.names, np.argmax(table.scores, axis=1).tolist(), strict=True))
    (frame_set,) = page_of(client, "frames", "gaussian_noise-2", "b")["sets"]
    frames = [frame_set["anchor"], *frame_set["neighbours"]]
    assert [frame["number"] for frame in frames] == [20, 19, 22]
    assert [frame["frame"] for frame in frames] == ["b/000020", "b/000019", "b/000022"]
    for frame in frames:
        assert frame["clean"] == predicted[frame["frame"]]
        assert frame["right_clean"] == (predicted[frame["frame"]] == 1)


def test_true_and_predicted_boxes(client: TestClient, runs: dict[str, Path]) -> None:
    objects = page_of(client, "objects", "gaussian_noise-3", "b")["objects"]
    assert (objects["classes"], objects["k"]) == (["light", "dark", "whale"], 2)
    frames = {frame["name"]: frame for frame in objects["frames"]}
    anchors = {name: frame["anchor"] for name, frame in frames.items()}
    assert anchors == {"000020": True, "000019": False, "000022": False}
    assert frames["000020"]["true"] == [[1, 4, 4, 20, 20], [1, 30, 8, 44, 30]]
    for side, file in (("clean", "clean"), ("corrupted", "gaussian_noise-3")):
        boxes = read_boxes(runs["objects"] / "predictions" / f"{file}.npz")[0]["b/000020"]
        best = boxes.sure.argmax()
        assert frames["000020"][side][0] == [boxes.label[best], *boxes.box[best], round(boxes.sure[best], 4)]
        scores = [row[5] for row in frames["000020"][side]]
        assert scores == sorted(scores, reverse=True)
    clean = page_of(client, "objects", "clean", "b")["objects"]
    assert all(not frame["corrupted"] and frame["clean"] for frame in clean["frames"])


def test_detected_frames_are_listed_for_mended_runs_only(client: TestClient, runs: dict[str, Path]) -> None:
    detected = RunRecord.read(runs["mended"]).found_struck("a", "thumos14-c/black_frame:3")
    assert detected
    assert page_of(client, "mended", BLACK, "a")["found_struck"] == [list(span) for span in detected]
    assert page_of(client, "mended", "clean", "a")["found_struck"] == []
    assert page_of(client, "detection", BLACK, "a")["found_struck"] is None
    models = {name: client.get(f"/runs/{name}.json").json()["run"]["model"] for name in ("mended", "detection")}
    assert models == {"mended": "leaning, mended (known)", "detection": "leaning"}


def test_questions_have_their_options_and_probabilities(client: TestClient, runs: dict[str, Path]) -> None:
    stored = json.loads((runs["questions"] / "predictions" / "clean.json").read_text())
    pages = [page_of(client, "questions", BLUR, f"video_{i:04d}") for i in range(6)]
    assert "actions" not in pages[0]
    for page in pages:
        assert [question["kind"] for question in page["questions"]] == ["what", "what", "order"]
        for question in page["questions"]:
            clean = question["clean"]
            assert question["options"] == ["jump", "run", "sit down"]
            assert clean["probabilities"] == stored[question["id"]]["probabilities"]
            assert clean["probabilities"] is None or clean["choice"] == int(np.argmax(clean["probabilities"]))
            assert clean["right"] == (clean["choice"] == question["answer"])
    texts = [question["corrupted"]["text"] for page in pages for question in page["questions"]]
    assert "unreadable" in texts


def test_windows_are_on_a_timeline_with_the_scored_one_marked(client: TestClient, runs: dict[str, Path]) -> None:
    page = page_of(client, "moments", BLUR, "video_0001")
    assert (page["duration"], page["tiou"], page["tious"]) == (24.0, 0.5, [0.3, 0.5, 0.7])
    actions = [(action["start"], action["end"], action["label"]) for action in page["actions"]]
    assert actions == [(2.0, 8.0, "Sentence 0."), (10.0, 22.0, "Sentence 1.")]
    for side in ("clean", "corrupted"):
        assert sorted(one["label"] for one in page[side] if one["first"]) == ["Sentence 0.", "Sentence 1."]
        assert len(page[side]) == 4  # two windows a sentence
    first = max(page["clean"], key=lambda one: one["tiou"])
    assert page["actions"][first["action"] or 0]["label"] == first["label"]
    strict = page_of(client, "moments", BLUR, "video_0001", "?tiou=0.99")
    assert not any(one["kind"] == "true_positive" for one in strict["clean"])
    assert page_of(client, "moments", "clean", "video_0001")["corrupted"] == []
    pages = [page_of(client, "moments", "clean", f"video_{i:04d}") for i in range(6)]
    is_found = [action["found_clean"] for page in pages for action in page["actions"]]
    record = RunRecord.read(runs["moments"])
    assert np.mean(is_found) == pytest.approx(record.scores.clean)
    assert len(record.view("video_0001", "clean", brief=True).clean) == 2  # type: ignore[union-attr]


def test_run_pages_have_chance_and_baselines(client: TestClient) -> None:
    chance = {name: client.get(f"/runs/{name}.json").json()["chance"] for name in ("questions", "moments")}
    assert chance["questions"] == "chance 33.3, without video 33.3, with one frame 33.3"
    assert chance["moments"].startswith("whole video as window 50.0, with one frame")
