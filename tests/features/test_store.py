"""Feature folders on disk: round trip, validity of finished videos and detection of damage."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

from jostle.errors import DataError, MediaError, SourceChanged
from jostle.features.extraction import Extraction
from jostle.features.store import (
    FeatureOrigin,
    FeatureStore,
    VideoEntry,
    read_extraction,
    read_store,
    write_extraction,
)
from jostle.io.video.source import file_fingerprint, source_state

ORIGIN = FeatureOrigin("net", "sha256:00", 16, 4, "all", 3, ("fog:3",), "centre:5%", 7)
DONE = Extraction(np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((30, 2), np.float32))


def fill(folder: Path, video_id: str = "a", source: tuple[int, int] = (5, 9)) -> FeatureStore:
    store = FeatureStore(folder, ORIGIN)
    file, features, frames = write_extraction(folder, video_id, DONE, with_frames=True)
    store.add(video_id, VideoEntry(file, 4, 25.0, 30, 1.2, features, source, frames, ("odd",)))
    store.save()
    return store


def test_features_round_trip(tmp_path: Path) -> None:
    store = fill(tmp_path)
    assert np.load(tmp_path / "a.npy").tolist() == DONE.features.tolist()
    assert np.load(tmp_path / "frames" / "a.npy").shape == (30, 2)
    origin, videos = read_store(tmp_path)
    assert (origin, videos) == (ORIGIN, store.videos)
    content = json.loads((tmp_path / "features.json").read_text())
    assert {key: content[key] for key in ("format", "extractor", "window", "stride", "specs")} == {
        "format": 1,
        "extractor": "net",
        "window": 16,
        "stride": 4,
        "specs": ["fog:3"],
    }
    assert content["videos"]["a"]["fps"] == 25.0
    restored = read_extraction(tmp_path, videos["a"], with_frames=True)
    assert restored.features.tobytes() == DONE.features.tobytes()
    assert restored.seen.tobytes() == DONE.seen.tobytes()
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "features.json", "frames", "manifest.jsonl"]


def test_folders_of_older_versions_without_reproduce_bugs_are_read(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "features.json"
    content = json.loads(path.read_text())
    assert content.pop("reproduce_bugs") == []
    path.write_text(json.dumps(content))
    assert read_store(tmp_path)[0] == ORIGIN
    del content["rule"]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="damaged"):
        read_store(tmp_path)


def test_a_finished_video_is_complete_and_from_the_same_source(tmp_path: Path) -> None:
    fill(tmp_path)
    store = FeatureStore(tmp_path, ORIGIN)
    assert store.is_done("a", (5, 9), with_frames=True)
    assert not store.is_done("b", (5, 9), with_frames=False)
    assert not store.is_done("a", (5, 10), with_frames=False)
    assert not store.is_done("a", (6, 9), with_frames=False)


@pytest.mark.parametrize("file", ["a.npy", "frames/a.npy"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "other shape", "empty", "folder"])
def test_damaged_files_are_detected(tmp_path: Path, file: str, damage: str) -> None:
    fill(tmp_path)
    path = tmp_path / file
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[:-5])
    elif damage == "flipped":
        path.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    elif damage == "other shape":
        np.save(path, np.ones((2, 3), np.float32))
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        if damage == "folder":
            path.mkdir()
    store = FeatureStore(tmp_path, ORIGIN)
    assert not store.is_done("a", (5, 9), with_frames=True)
    assert store.is_done("a", (5, 9), with_frames=False) == (file != "a.npy")
    with pytest.raises(DataError, match="missing, or changed since it was written; extract it again"):
        read_extraction(tmp_path, store.videos["a"], with_frames=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"format": 1, "extractor": "net", "videos": {}}',
        '{"format": 2, "extractor": "net", "videos": {}}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_a_damaged_list_is_written_again_from_the_ledger(tmp_path: Path, text: str) -> None:
    videos = fill(tmp_path).videos
    list_file = tmp_path / "features.json"
    content = list_file.read_bytes()
    list_file.write_text(text)
    store = FeatureStore(tmp_path, ORIGIN)
    assert store.videos == videos
    assert "it is written again" in store.warnings[0]
    store.save()
    assert list_file.read_bytes() == content
    (tmp_path / "manifest.jsonl").unlink()
    list_file.write_text(text)
    assert FeatureStore(tmp_path, ORIGIN).videos == {}


def test_a_folder_of_a_version_without_ledgers_is_read(tmp_path: Path) -> None:
    videos = fill(tmp_path).videos
    (tmp_path / "manifest.jsonl").unlink()
    assert read_store(tmp_path) == (ORIGIN, videos)
    store = FeatureStore(tmp_path, ORIGIN)
    assert store.is_done("a", (5, 9), with_frames=True)
    store.leave_out("a", "it has changed and cannot be read")
    store.save()
    assert read_store(tmp_path) == (ORIGIN, {})


def test_a_killed_process_loses_no_video(tmp_path: Path) -> None:
    store = fill(tmp_path)
    entry = store.videos["a"]
    store.add("b", dataclasses.replace(entry, file="b.npy"))  # and killed: nothing else is written
    assert "b.npy" not in (tmp_path / "features.json").read_text()
    assert read_store(tmp_path)[1].keys() == {"a", "b"}
    assert FeatureStore(tmp_path, ORIGIN).videos == read_store(tmp_path)[1]
    with (tmp_path / "manifest.jsonl").open("rb+") as file:
        file.truncate((tmp_path / "manifest.jsonl").stat().st_size - 10)
    assert FeatureStore(tmp_path, ORIGIN).videos.keys() == {"a"}


def test_two_processes_list_the_videos_of_both(tmp_path: Path) -> None:
    entry = fill(tmp_path).videos["a"]
    first, second = FeatureStore(tmp_path, ORIGIN), FeatureStore(tmp_path, ORIGIN)
    first.add("b", dataclasses.replace(entry, file="b.npy"))
    second.add("c", dataclasses.replace(entry, file="c.npy"))
    first.save()
    second.save()
    listed = json.loads((tmp_path / "features.json").read_text())
    assert [*listed["videos"]] == ["a", "b", "c"]


def test_videos_are_of_the_features_of_their_last_line(tmp_path: Path) -> None:
    entry = fill(tmp_path).videos["a"]
    FeatureStore(tmp_path, ORIGIN).add("b", dataclasses.replace(entry, file="b.npy"))
    other = dataclasses.replace(ORIGIN, seed=8)
    store = FeatureStore(tmp_path, other, overwrite=True)
    assert store.videos == {}
    store.add("a", entry)
    assert read_store(tmp_path) == (other, {"a": entry})
    assert FeatureStore(tmp_path, ORIGIN, overwrite=True).videos.keys() == {"b"}
    (tmp_path / "features.json").unlink()
    assert FeatureStore(tmp_path, other).videos.keys() == {"a"}


def test_a_list_with_foreign_files_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "features.json"
    path.write_text(path.read_text().replace('"a.npy"', '"../b.npy"'))
    with pytest.raises(DataError, match="video a has a file that is not its own"):
        read_store(tmp_path)


@pytest.mark.parametrize(("key", "value"), [("extractor", "other"), ("weights", None), ("seed", 8), ("specs", ())])
def test_other_features_are_not_mixed_in(tmp_path: Path, key: str, value: object) -> None:
    fill(tmp_path)
    other = dataclasses.replace(ORIGIN, **{key: value})
    with pytest.raises(SourceChanged, match=f"contains other features: {key} was .*, now .*Name another folder"):
        FeatureStore(tmp_path, other)
    assert FeatureStore(tmp_path, other, overwrite=True).videos == {}


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "features.json").write_text('{"name": "my page"}')
    assert read_store(tmp_path) is None
    with pytest.raises(SourceChanged, match="was not written by jostle"):
        FeatureStore(tmp_path, ORIGIN)


def test_strange_ids_get_safe_names(tmp_path: Path) -> None:
    fill(tmp_path, "../etc/passwd")
    assert [name for name in os.listdir(tmp_path) if name.endswith(".npy")] == ["__etc_passwd~3cba4c3a335390b6.npy"]
    assert FeatureStore(tmp_path, ORIGIN).is_done("../etc/passwd", (5, 9), with_frames=True)


def test_only_old_partial_files_are_removed(tmp_path: Path) -> None:
    for name, age in ((".a.npy.part-1-0", 7200), (".b.npy.part-1-0", 10)):
        path = tmp_path / name
        path.write_bytes(b"half")
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    FeatureStore(tmp_path, ORIGIN)
    assert os.listdir(tmp_path) == [".b.npy.part-1-0"]


def test_unreadable_paths_are_reported(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"no\.mp4: no such file"):
        source_state(tmp_path / "no.mp4")
    with pytest.raises(DataError, match="cannot be read"):
        file_fingerprint(tmp_path / "no")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be created"):
        FeatureStore(tmp_path / "file", ORIGIN)
