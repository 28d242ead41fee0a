"""The page of a video of objects: true boxes, and those that were found before and after."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from jostle.io.formats.boxes import read_boxes


def test_boxes_are_told_true_and_found(client: TestClient, runs: dict[str, Path]) -> None:
    told = client.get("/runs/objects/cells/gaussian_noise-3/videos/b.json").json()
    objects = told["objects"]
    assert (objects["classes"], objects["k"]) == (["light", "dark", "whale"], 2)
    frames = {frame["name"]: frame for frame in objects["frames"]}
    assert {name: frame["anchor"] for name, frame in frames.items()} == {
        "000020": True,
        "000019": False,
        "000022": False,
    }
    assert frames["000020"]["true"] == [[1, 4, 4, 20, 20], [1, 30, 8, 44, 30]]
    for side, file in (("clean", "clean"), ("corrupted", "gaussian_noise-3")):
        own = read_boxes(runs["objects"] / "predictions" / f"{file}.npz")[0]["b/000020"]
        best = own.sure.argmax()
        assert frames["000020"][side][0] == [own.label[best], *own.box[best], round(own.sure[best], 4)]
        scores = [row[5] for row in frames["000020"][side]]
        assert scores == sorted(scores, reverse=True)


def test_the_clean_cell_has_nothing_corrupted(client: TestClient) -> None:
    told = client.get("/runs/objects/cells/clean/videos/b.json").json()
    assert all(not frame["corrupted"] and frame["clean"] for frame in told["objects"]["frames"])
