"""Search for videos in a folder, and coverage of a list of ids."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jostle.datasets.videos import VideoCoverage, coverage, duplicates, find_videos
from jostle.errors import DataError


def write_text(path: Path, content: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content or str(path))
    return path


def test_videos_are_found_by_suffix_in_every_folder(tmp_path: Path) -> None:
    paths = {
        "a": write_text(tmp_path / "a.mp4"),
        "b.c": write_text(tmp_path / "x/y/b.c.AVI"),
        "-d": write_text(tmp_path / "x/-d.webm"),
    }
    write_text(tmp_path / "notes.txt")
    videos = find_videos(tmp_path)
    assert videos == paths
    assert list(videos) == sorted(videos)
    assert videos.skipped == ()
    assert videos.warnings == ()


def test_roots_that_are_missing_empty_or_a_link(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder of videos; give the folder that holds them"):
        find_videos(tmp_path / "none")
    assert find_videos(str(tmp_path)) == {}
    write_text(tmp_path / "disk/a.mp4")
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    assert find_videos(tmp_path / "data") == {"a": tmp_path / "data/a.mp4"}


def test_a_link_beside_its_target_is_not_a_second_file(tmp_path: Path) -> None:
    real = write_text(tmp_path / "all/a.mp4")
    (tmp_path / "Split").mkdir()
    (tmp_path / "Split/a.mp4").symlink_to("../all/a.mp4")
    (tmp_path / "again").symlink_to("all")
    assert find_videos(tmp_path) == {"a": real}


@pytest.mark.fault("F18")
def test_F18_external_links_loops_and_odd_files_are_skipped_and_counted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    video = write_text(root / "a.mp4")
    write_text(tmp_path / "outside/b.mp4")
    (root / "b.mp4").symlink_to(tmp_path / "outside/b.mp4")
    (root / "more").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(".")
    (root / "self.mp4").symlink_to("self.mp4")
    (root / "gone.mp4").symlink_to("nothing.mp4")
    (root / "folder.mp4").mkdir()
    write_text(root / "._a.mp4")
    os.mkfifo(root / "pipe.mp4")
    videos = find_videos(root)
    assert videos == {"a": video}
    assert videos.warnings == (
        f"2 skipped, dangling or looping link: {root / 'gone.mp4'}, {root / 'self.mp4'}",
        f"1 skipped, link to a file outside the root: {root / 'b.mp4'}",
        f"1 skipped, link to a folder outside the root: {root / 'more'}",
        f"2 skipped, not a regular file: {root / 'folder.mp4'}, {root / 'pipe.mp4'}",
        f"1 skipped, resource fork of another file: {root / '._a.mp4'}",
    )


def test_duplicates_read_only_files_of_equal_size(tmp_path: Path) -> None:
    files = {
        "a": write_text(tmp_path / "a.mp4", "same"),
        "b": write_text(tmp_path / "b.mp4", "else"),
        "c": write_text(tmp_path / "c.mp4", "same"),
        "long": write_text(tmp_path / "long.mp4", "longer"),
    }
    os.link(files["long"], tmp_path / "hard.mp4")
    files["hard"] = tmp_path / "hard.mp4"
    for name in ("e1", "e2"):
        files[name] = tmp_path / f"{name}.mp4"
        files[name].touch()
    assert duplicates(files) == [("a", "c"), ("long", "hard")]
    assert duplicates({"a": files["a"], "b": files["b"]}) == []


def test_duplicates_ignore_deleted_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone.mp4: cannot be read \(No such file or directory\); check the path"):
        duplicates({"a": tmp_path / "gone.mp4"})


def test_coverage_that_is_complete_or_empty() -> None:
    assert str(coverage(["a"], ["a"])) == "1 of 1 videos"
    assert coverage(["a"], ["a"]).share == 1
    assert coverage([], ["a"]) == VideoCoverage((), (), ("a",))
    assert coverage([], []).share == 0
    assert str(coverage("abcdef", "a")) == "1 of 6 videos (5 missing: b, c, d and 2 more)"
