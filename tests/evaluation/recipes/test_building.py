"""Corrupted copies on disk: layout, reproducibility, resumption and reports of failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
import jostle.api
from helpers.small_builds import NAMES, build
from jostle.errors import BadValue, DataError, SourceChanged
from jostle.evaluation.recipes.building import check_built
from jostle.io.files.ledger import Manifest


def hashes(folder: Path) -> dict[str, str]:
    return json.loads((folder / "jostle.json").read_text())["files"]


def test_copies_have_the_c_set_layout_and_equal_corrupt(video_root: Path, tmp_path: Path) -> None:
    done = build(video_root, tmp_path / "out", lossless=True)
    paths = sorted(hashes(tmp_path / "out"))
    assert paths == [f"contrast/{s}/test/{name}.mkv" for s in (1, 3) for name in NAMES]
    assert done.files.made == 4
    assert not done.failures
    source = video_root / "test" / "wave" / "one.v2.mp4"
    copied = jostle.read(tmp_path / "out" / "contrast/3/test/wave/one.v2.mkv")
    dataset = jostle.load_dataset("folder", "test", root=video_root)
    name = next(name for name, path in dataset.videos.items() if path == source)
    expected = jostle.corrupt(jostle.read(source), "kinetics-c/contrast:3", video_id=name)
    assert (copied.frames == expected.frames).all()


def test_building_is_reproducible_and_repairs_damaged_files(video_root: Path, tmp_path: Path) -> None:
    build(video_root, tmp_path / "one")
    first = hashes(tmp_path / "one")
    build(video_root, tmp_path / "two", cells=["kinetics-c/contrast:3"])
    assert len(hashes(tmp_path / "two")) == 2
    assert build(video_root, tmp_path / "two").files.made == 2
    assert hashes(tmp_path / "two") == first
    (tmp_path / "two" / "contrast/1/test/nod/two.mp4").write_bytes(b"x")
    assert check_built(tmp_path / "two").altered == ("contrast/1/test/nod/two.mp4 is not what was written",)
    assert build(video_root, tmp_path / "two").files.rebuilt == 1
    assert jostle.api.verify(tmp_path / "two").to_dict()["whole"] == 4


def test_a_build_stopped_before_its_first_line_resumes(
    video_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Manifest, "add", stop)
    with pytest.raises(KeyboardInterrupt):
        build(video_root, tmp_path / "out")
    monkeypatch.undo()
    files = build(video_root, tmp_path / "out").files
    assert (files.made, files.rebuilt) == (3, 1)


def test_another_seed_is_refused_in_the_same_folder(video_root: Path, tmp_path: Path) -> None:
    build(video_root, tmp_path / "out")
    with pytest.raises(SourceChanged, match=r"contains another set: seed was 0, now 1\. Name another folder"):
        build(video_root, tmp_path / "out", seed=1)


def test_a_folder_of_something_else_is_left_alone(video_root: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("...")
    with pytest.raises(DataError, match="contains files that are not a set of copies"):
        build(video_root, tmp_path / "out")


def test_an_unreadable_video_is_skipped(video_root: Path, tmp_path: Path) -> None:
    (video_root / "test" / "wave" / "one.v2.mp4").write_bytes(b"no video")
    done = build(video_root, tmp_path / "out")
    assert sorted(done.failures) == ["contrast/1/test/wave/one.v2.mp4", "contrast/3/test/wave/one.v2.mp4"]
    assert len(check_built(tmp_path / "out").lacking) == 2
    (video_root / "test" / "nod" / "two.mp4").write_bytes(b"no video")
    with pytest.raises(DataError, match="none of 4 copies could be written"):
        build(video_root, tmp_path / "other")


def test_clean_cells_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="none of the requested cells is corrupted"):
        jostle.build("puppets-c", out=tmp_path / "out", cells=["clean"])


def test_the_plan_estimates_files_and_bytes(video_root: Path) -> None:
    from jostle.api import plan_build

    info = plan_build(video_root.parent / "small.toml", data=video_root)
    assert info.files == 4
    assert info.bytes == 2 * sum(path.stat().st_size for path in video_root.rglob("*.mp4"))
