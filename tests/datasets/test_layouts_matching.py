"""Matching of ids to files: used, missing and unlisted videos add up."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.layouts import search
from jostle.datasets.layouts.classes import class_key, in_order, read_names, read_numbers
from jostle.datasets.layouts.kinetics import youtube_id
from jostle.datasets.layouts.matching import VideoIndex
from jostle.errors import DataError

IDS = st.lists(st.sampled_from(["a", "b", "-c", "é", "d e", "F", "f"]), unique=True)
FOLDERS = st.sampled_from([".", "videos", "val/run", "train", "x/y/z"])


@given(ids=IDS, folders=st.dictionaries(st.sampled_from(["a", "b", "-c", "é", "F", "g", "h"]), FOLDERS))
@settings(max_examples=40, deadline=None)
def test_used_missing_and_unlisted_add_up(ids: list[str], folders: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = {name: root / subfolder / f"{name}.mp4" for name, subfolder in folders.items()}
        for file in files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        match = VideoIndex(root).match(ids, known=ids)
    assert match.videos == {name: files[name] for name in ids if name in files}
    assert set(match.missing) == set(ids) - set(files)
    assert set(match.unlisted) == {
        f for n, f in files.items() if n not in ids and folders[n] not in ("train", "val/run")
    }


def test_a_file_belongs_to_one_id_only(tmp_path: Path) -> None:
    for name in ("run/same.avi", "x_000001_000011.mp4", "dotted.mp4", "y.mp4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    videos = VideoIndex(tmp_path)
    paths = ["run/same.avi", "wave/same.avi", "dotted.v2"]
    match = videos.match(["run/same", "wave/same", "dotted.v2"], paths=paths)
    assert match.videos == {"run/same": tmp_path / "run/same.avi"}
    clips = ["x_000001_000011", "x_000020_000030", "y_000001_000011", "y_000020_000030"]
    assert list(videos.match(clips, core=youtube_id).videos) == ["x_000001_000011"]
    assert list(videos.match(["x", "y_000001_000011"], core=youtube_id).videos) == ["x", "y_000001_000011"]


def test_folders_with_many_subfolders_are_not_searched(tmp_path: Path) -> None:
    for number in range(search.MOST_FOLDERS + 1):
        (tmp_path / "frames" / f"{number:03}").mkdir(parents=True)
    (tmp_path / "frames" / "000" / "x.json").touch()
    (tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "deep.json").touch()
    (tmp_path / "a" / "b" / "c" / "d" / "deeper.json").touch()
    (tmp_path / "a" / ".hidden.json").touch()
    assert search.small_files(tmp_path) == [tmp_path / "a/b/c/deep.json"]


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("classInd.txt", "1 Apply Lipstick\n2 YoYo\n", ("Apply Lipstick", "YoYo")),
        ("classes.txt", "run\n\njump up\n", ("run", "jump up")),
        ("labels.csv", "id,name\n1,jump\n0,run\n", ("run", "jump")),
        ("labels.json", '{"jump": "1", "run": 0}', ("run", "jump")),
    ],
)
def test_class_lists_are_read(name: str, text: str, names: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_names(tmp_path / name) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 run\n0 jump\n", "a number or a name is there twice"),
        ("0 jump up\n1 jump_up\n", "a number or a name is there twice"),
        ("0 run\n2 jump\n", "from 0 to 2 with gaps"),
        ('{"run": -1}', "class run has"),
    ],
)
def test_invalid_class_lists_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(DataError, match=message) as refused:
        read_names(tmp_path / "c")
    assert refused.value.fault == "F36"
    assert class_key("jump up") == class_key("Jump_Up")


def test_gaps_are_allowed_in_numbered_names(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("3 run\n7 jump\n")
    assert read_numbers(tmp_path / "c") == {3: "run", 7: "jump"}


def test_classes_that_do_not_fit_the_list_are_refused() -> None:
    named = VideoLabels(("v",), ("jumping",), [0], [0])  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"1 class\(es\) are not in the list of 2: jumping; the nearest .* jump$"):
        in_order(named, ["run", "jump"], "list")
    numbered = VideoLabels(("v",), ("2",), [0], [0], numbered=True)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the class number 2 has no name: the list of classes has 2"):
        in_order(numbered, ["run", "jump"], "list")
