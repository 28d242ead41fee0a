"""User folders: the annotations and videos present determine task and subsets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
from helpers.laid_files import classes_of, write_text
from jostle.errors import DataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.mp4", "clips/b.AVI", "clips/ü.webm"):
        write_text(tmp_path / name)
    write_text(tmp_path / "README.txt", "my videos\n")
    return tmp_path


def test_segments_in_csv_give_a_detection_set(root: Path) -> None:
    write_text(root / "my annotations.csv", "video_id,t_start,t_end,label\na,0.5,1,jump\nb,1,2,run\nc,1,2,run\n")
    dataset = jostle.load_dataset("folder", root=root)
    assert (dataset.task, dataset.subset, len(dataset.truth)) == ("detection", "all", 3)
    assert dataset.videos == {"a": root / "a.mp4", "b": root / "clips/b.AVI"}
    assert (dataset.missing, dataset.unlisted) == (("c",), (root / "clips/ü.webm",))


def test_segments_in_json_have_subsets(root: Path) -> None:
    entries = {
        video: {"subset": subset, "annotations": [{"label": "jump", "segment": [0, 1]}]}
        for video, subset in (("a", "Training"), ("b", "val"), ("ü", "val"))
    }
    write_text(root / "truth.json", json.dumps({"database": entries}))
    dataset = jostle.load_dataset("folder", root=root)
    assert (dataset.subset, dataset.truth.videos, dataset.missing, dataset.unlisted) == ("val", ("b", "ü"), (), ())
    for subset in ("train", "training", "TRAINING"):
        assert jostle.load_dataset("folder", subset, root=root).truth.videos == ("a",)
    with pytest.raises(DataError, match="no subset 'test'; it has Training, val; name one of them") as refused:
        jostle.load_dataset("folder", "test", root=root)
    assert refused.value.fault == "F29"


ROWS = [
    {"file_name": "clips/b.AVI", "label": "run", "split": "test"},
    {"file_name": "a.mp4", "label": "jump", "split": "test"},
    {"file_name": "clips/ü.webm", "label": "run", "split": "train"},
]
ENTRIES = {
    Path(row["file_name"]).stem: {"subset": row["split"], "annotations": {"label": row["label"]}} for row in ROWS
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metadata.csv", "\n".join(["file_name,label,split", *(",".join(row.values()) for row in ROWS)])),
        ("metadata.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS)),
        ("lists/labels.json", json.dumps({"database": ENTRIES})),
    ],
)
def test_a_table_of_classes_gives_a_recognition_set(name: str, text: str, root: Path) -> None:
    write_text(root / name, text)
    dataset = jostle.load_dataset("folder", root=root)
    assert (dataset.task, dataset.subset) == ("recognition", "test")
    assert classes_of(dataset) == {"b": "run", "a": "jump"}
    assert dataset.labels.classes == ("jump", "run")
    assert list(dataset.videos) == ["b", "a"]
    assert (dataset.missing, dataset.unlisted) == ((), ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.json", '{"a": "jump", "clips/b.AVI": "run"}'),
        ("classes_of_videos.csv", "video,class\na,jump\nb,run\n"),
        ("list.txt", "a.mp4 0\nclips/b.AVI 1\n"),
    ],
)
def test_a_table_without_subsets_is_one_set(name: str, text: str, root: Path) -> None:
    write_text(root / name, text)
    dataset = jostle.load_dataset("folder", root=root)
    assert (dataset.subset, list(dataset.videos), len(dataset.unlisted)) == ("all", ["a", "b"], 1)
    with pytest.raises(DataError, match="it has no subsets, so there is no 'test'; leave the subset out"):
        jostle.load_dataset("folder", "test", root=root)


def test_one_table_for_each_subset(root: Path) -> None:
    write_text(root / "train.csv", "video,label\na,jump\n")
    write_text(root / "test.csv", "video,label\nb,jump\n")
    assert list(jostle.load_dataset("folder", root=root).videos) == ["b"]
    assert list(jostle.load_dataset("folder", "training", root=root).videos) == ["a"]
    write_text(root / "more.csv", "video,label\nb,jump\n")
    with pytest.raises(DataError, match=r"could be the annotations of your own videos: .*more.csv"):
        jostle.load_dataset("folder", root=root)
    named = jostle.load_dataset("folder", root=root, annotations=root / "more.csv")
    assert named.source == root / "more.csv"


def test_one_file_may_be_of_one_subset(root: Path) -> None:
    write_text(root / "test.csv", "video,label\nb,jump\n")
    assert jostle.load_dataset("folder", root=root).subset == "test"
    assert jostle.load_dataset("folder", "test", root=root).missing == ()
    with pytest.raises(DataError, match="no subset 'train'; it has test"):
        jostle.load_dataset("folder", "train", root=root)


def test_folders_named_after_classes(tmp_path: Path) -> None:
    for name in ("run/1.mp4", "jump/1.mp4", "jump/2.mov"):
        write_text(tmp_path / "videos" / name)
    dataset = jostle.load_dataset("folder", root=tmp_path)
    assert classes_of(dataset) == {"videos/jump/1": "jump", "videos/jump/2": "jump", "videos/run/1": "run"}
    assert dataset.videos["videos/run/1"] == tmp_path / "videos/run/1.mp4"
    (tmp_path / "videos").rename(tmp_path / "train")
    write_text(tmp_path / "test" / "run" / "9.mp4")
    assert classes_of(jostle.load_dataset("folder", root=tmp_path)) == {"9": "run"}
    assert len(jostle.load_dataset("folder", "train", root=tmp_path).videos) == 3


def test_predictions_are_no_annotations(root: Path) -> None:
    write_text(
        root / "result.json", json.dumps({"results": {"a": [{"label": "jump", "segment": [0, 1], "score": 0.5}]}})
    )
    write_text(root / "classified.json", json.dumps({"results": {"a": [{"label": "jump", "score": 0.5}]}}))
    write_text(root / "truth.csv", "video_id,t_start,t_end,label\na,0.5,1,jump\n")
    assert jostle.load_dataset("folder", root=root).source == root / "truth.csv"


def test_folders_without_annotations_are_refused(root: Path) -> None:
    (root / "clips").rename(root / "videos")
    with pytest.raises(DataError, match="no annotations of your own videos: searched for one JSON or CSV file"):
        jostle.load_dataset("folder", root=root)
    with pytest.raises(DataError, match=r"README.txt: not annotations: no segments, classes, questions or sentences"):
        jostle.load_dataset("folder", root=root, annotations=root / "README.txt")
    write_text(root / "cut.json", '{"database": {"a"')
    with pytest.raises(DataError, match="broken JSON"):
        jostle.load_dataset("folder", root=root)
    (root / "cut.json").unlink()
    write_text(root / "labels.csv", "video,label\na,\n")
    with pytest.raises(DataError, match="the row of 'a' has no video or no class"):
        jostle.load_dataset("folder", root=root)
    write_text(root / "labels.csv", "video,label\n")
    with pytest.raises(DataError, match="no video is listed"):
        jostle.load_dataset("folder", root=root)


def test_sets_of_frames(tmp_path: Path) -> None:
    write_text(tmp_path / "pmsets.json", '{"v/5.jpg": ["v/4.jpg"]}')
    write_text(tmp_path / "labels.json", '{"v/5.jpg": [1], "v/4.jpg": [1]}')
    write_text(tmp_path / "v" / "5.jpg")
    dataset = jostle.load_dataset("folder", root=tmp_path)
    assert (dataset.task, dataset.missing) == ("frames", ("v/4.jpg",))


@pytest.mark.fault("F143")
def test_f143_outputs_of_jostle_are_no_annotations(root: Path) -> None:
    """Outputs of `train`, `run` and `build` may be in the folder of their data."""
    write_text(root / "mine.csv", "video_id,t_start,t_end,label\na,0.5,1,jump\nb,1,2,run\n")
    before = jostle.load_dataset("folder", root=root)
    write_text(root / "model/log.jsonl", '{"event": "warning", "message": "slow"}\n{"step": 1, "loss": 2.0}\n')
    write_text(root / "model/train.json", '{"steps": 1}\n')
    write_text(root / "run/run.json", "{}\n")
    write_text(root / "run/journal.jsonl", '{"event": "video", "video": "a"}\n{"event": "done", "videos": 1}\n')
    write_text(root / "run/failures.jsonl", '{"video": "a", "why": "damaged"}\n')
    entry = {"subset": "test", "annotations": [{"label": "jump", "segment": [0, 1]}]}
    write_text(root / "run/truth.json", json.dumps({"database": {"a": entry}}))
    line = {"file": "a.mp4", "key": "1f", "size": 1, "mtime_ns": 2, "sha256": "3e"}
    write_text(root / "manifest.jsonl", f"\n{json.dumps(line)}\n")
    after = jostle.load_dataset("folder", root=root)
    assert (after.source, after.truth.videos) == (root / "mine.csv", before.truth.videos)


def test_a_user_manifest_is_read(root: Path) -> None:
    write_text(
        root / "manifest.jsonl", '{"file_name": "a.mp4", "label": "jump"}\n{"file_name": "b.AVI", "label": "run"}\n'
    )
    assert classes_of(jostle.load_dataset("folder", root=root)) == {"a": "jump", "b": "run"}
