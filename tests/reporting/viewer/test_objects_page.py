"""Viewer page of an object detection video: true boxes and predictions, clean and corrupted."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from jostle.io.formats.boxes import read_boxes


def test_page_has_true_and_predicted_boxes(client: TestClient, runs: dict[str, Path]) -> None:
    page = client.get("/runs/objects/cells/gaussian_noise-3/videos/b.json").json()
    objects = page["objects"]
    assert (objects["classes"], objects["k"]) == (["light", "dark", "whale"], 2)
    frames = {frame["name"]: frame for frame in objects["frames"]}
    assert {name: frame["anchor"] for name, frame in frames.items()} == {
        "000020": True,
        "000019": False,
        "000022": False,
    }
    assert frames["000020"]["true"] == [[1, 4, 4, 20, 20], [1, 30, 8, 44, 30]]
    for side, file in (("clean", "clean"), ("corrupted", "gaussian_noise-3")):
        boxes = read_boxes(runs["objects"] / "predictions" / f"{file}.npz")[0]["b/000020"]
        best = boxes.sure.argmax()
        assert frames["000020"][side][0] == [boxes.label[best], *boxes.box[best], round(boxes.sure[best], 4)]
        scores = [row[5] for row in frames["000020"][side]]
        assert scores == sorted(scores, reverse=True)


def test_clean_cell_has_no_corrupted_boxes(client: TestClient) -> None:
    page = client.get("/runs/objects/cells/clean/videos/b.json").json()
    assert all(not frame["corrupted"] and frame["clean"] for frame in page["objects"]["frames"])
