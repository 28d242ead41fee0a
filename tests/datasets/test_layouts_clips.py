"""Kinetics, Something-Something, UCF101 and HMDB51 in small folders of every common layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
from helpers.laid_files import classes_of, write_text
from jostle.datasets.layouts.classes import shipped_names
from jostle.errors import DataError

CLIPS = {
    "-3B32lodo2M_000059_000069": "abseiling",
    "4NtoJOl4x14_000001_000011": "training dog",
    "zzzzzzzzzzz_000100_000110": "zumba",
}
HEADER = "label,youtube_id,time_start,time_end,split\n"
CSV = HEADER + "".join(f"{k},{c[:11]},{int(c[12:18])},{int(c[19:])},validate\n" for c, k in CLIPS.items())


@pytest.mark.parametrize("annotations", ["val.csv", "annotations/kinetics-400_val.csv", "Annotations/validate.CSV"])
@pytest.mark.parametrize("videos", ["val/{k}/{c}.mp4", "k400/val_256/{c}.MP4", "videos/{y}.webm"])
def test_kinetics_with_the_official_list(annotations: str, videos: str, tmp_path: Path) -> None:
    write_text(tmp_path / annotations, CSV)
    for clip, label in CLIPS.items():
        write_text(tmp_path / videos.format(c=clip, k=label, y=clip[:11]))
    dataset = jostle.load_dataset("kinetics400", root=tmp_path)
    assert (dataset.task, dataset.subset) == ("recognition", "validation")
    assert classes_of(dataset) == CLIPS
    assert list(dataset.videos) == list(CLIPS)
    assert (dataset.missing, dataset.unlisted) == ((), ())
    assert len(dataset.notes) == 1
    assert "names 3 of 400 classes" in dataset.notes[0]


def test_kinetics_as_a_list_of_paths_and_numbers(tmp_path: Path) -> None:
    names = sorted(CLIPS.values())
    lines = [f"{label}/{clip}.mp4 {names.index(label)}\n" for clip, label in CLIPS.items()]
    write_text(tmp_path / "kinetics400_val_list_videos.txt", "".join(reversed(lines)))
    for clip, label in CLIPS.items():
        write_text(tmp_path / "videos_val" / label / f"{clip}.mp4")
    bare = jostle.load_dataset("kinetics400", root=tmp_path).labels
    assert (bare.numbered, bare.classes) == (True, ("0", "1", "2"))
    write_text(tmp_path / "kinetics_400_labels.csv", "id,name\n" + "".join(f"{i},{k}\n" for i, k in enumerate(names)))
    dataset = jostle.load_dataset("kinetics400", root=tmp_path)
    assert not dataset.labels.numbered
    assert dataset.labels.classes == tuple(names)
    assert classes_of(dataset) == CLIPS
    assert dataset.missing == ()


def test_a_list_of_all_subsets_gives_the_requested_one(tmp_path: Path) -> None:
    write_text(tmp_path / "kinetics_train_val.csv", CSV + "zumba,bbbbbbbbbbb,1,11,train\n")
    assert jostle.load_dataset("kinetics400", root=tmp_path).labels.videos == tuple(CLIPS)
    training = jostle.load_dataset("kinetics400", "training", root=tmp_path)
    assert training.labels.videos == ("bbbbbbbbbbb_000001_000011",)
    with pytest.raises(DataError, match=r"validate") as refused:
        jostle.load_dataset("kinetics400", "test", root=tmp_path, annotations=tmp_path / "kinetics_train_val.csv")
    assert refused.value.fault == "F29"


def test_kinetics_in_folders_named_after_classes(tmp_path: Path) -> None:
    for clip, label in CLIPS.items():
        write_text(tmp_path / "val" / label.replace(" ", "_") / f"{clip}.mp4")
    write_text(tmp_path / "train" / "zumba" / "other.mp4")
    dataset = jostle.load_dataset("kinetics400", root=tmp_path)
    assert classes_of(dataset) == {clip: label.replace(" ", "_") for clip, label in CLIPS.items()}
    assert dataset.source == tmp_path
    assert list(jostle.load_dataset("kinetics400", "training", root=tmp_path).videos) == ["other"]
    with pytest.raises(DataError, match="no videos of the subset 'test'; there are folders of training, validation"):
        jostle.load_dataset("kinetics400", "test", root=tmp_path)
    class_folders = jostle.load_dataset("kinetics400", root=tmp_path / "val")
    assert set(class_folders.labels.classes) == {"abseiling", "training_dog", "zumba"}, "a class is no subset"


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("kinetics400", "val/a.mp4", "", r"searched for kinetics\*val\*.csv, .*, folders named after classes"),
        ("mini-kinetics200", "val.txt", "a.mp4 0\nb.mp4 1\n", "numbers, of which 200 classes cannot be picked by name"),
        ("ssv2", "validation.json", '[{"id": "1"}]', r"entry 0 is an object .*without 'id' and 'template'"),
    ],
)
def test_folders_that_do_not_say_the_classes_are_refused(
    name: str, file: str, text: str, message: str, tmp_path: Path
) -> None:
    write_text(tmp_path / file, text)
    with pytest.raises(DataError, match=message):
        jostle.load_dataset(name, root=tmp_path)


def test_a_partial_copy_of_clips(tmp_path: Path) -> None:
    write_text(tmp_path / "val.csv", CSV)
    write_text(tmp_path / "val" / "zumba" / "zzzzzzzzzzz_000100_000110.mp4")
    write_text(tmp_path / "val" / "zumba" / "new.mp4")
    dataset = jostle.load_dataset("kinetics400", root=tmp_path)
    assert dataset.missing == tuple(CLIPS)[:2]
    assert [path.name for path in dataset.unlisted] == ["new.mp4"]
    available = dataset.at_hand()
    assert classes_of(available) == {"zzzzzzzzzzz_000100_000110": "zumba"}
    assert available.labels.classes == dataset.labels.classes, "class numbers do not depend on the copy"


def test_the_bundled_mini_lists_are_complete() -> None:
    kinetics, ssv2 = shipped_names("mini-kinetics-200.txt"), shipped_names("mini-ssv2-87.txt")
    assert (len(set(kinetics)), len(set(ssv2))) == (200, 87)
    assert kinetics == tuple(sorted(kinetics))
    assert ssv2 == tuple(sorted(ssv2))


def test_mini_kinetics_is_picked_from_any_copy(tmp_path: Path) -> None:
    write_text(tmp_path / "val.csv", CSV + "air drumming,aaaaaaaaaaa,1,11,validate\n")
    dataset = jostle.load_dataset("mini-kinetics200", root=tmp_path)
    assert len(dataset.labels.classes) == 200
    assert list(classes_of(dataset).values()) == ["abseiling", "training_dog", "zumba"]
    entries = {
        clip[:11]: {"subset": "validation", "annotations": {"label": label, "segment": [1, 289]}}
        for clip, label in CLIPS.items()
    }
    write_text(tmp_path / "mini-kinetics-200_val.json", json.dumps({"labels": [], "database": entries}))
    write_text(tmp_path / "videos" / "-3B32lodo2M_000059_000069.mp4")
    own = jostle.load_dataset("mini-kinetics200", root=tmp_path)
    assert own.videos == {"-3B32lodo2M": tmp_path / "videos/-3B32lodo2M_000059_000069.mp4"}
    assert (own.unlisted, len(own.missing)) == ((), 2)


SSV2 = [
    {"id": "74225", "label": "folding a shirt", "template": "Folding [something]", "placeholders": ["a shirt"]},
    {"id": "3", "label": "showing a cup", "template": "Showing [something] behind [something]", "placeholders": []},
]


@pytest.mark.parametrize(
    ("annotations", "classes"),
    [
        ("something-something-v2-validation.json", "something-something-v2-labels.json"),
        ("labels/validation.json", "labels/labels.json"),
    ],
)
def test_something_something_in_its_published_layout(annotations: str, classes: str, tmp_path: Path) -> None:
    write_text(tmp_path / annotations, json.dumps(SSV2))
    names = {"Showing something behind something": "0", "Folding something": "1", "Throwing something": "2"}
    write_text(tmp_path / classes, json.dumps(names))
    for video in ("74225", "3", "99"):
        write_text(tmp_path / "20bn-something-something-v2" / f"{video}.webm")
    dataset = jostle.load_dataset("ssv2", root=tmp_path)
    assert dataset.labels.classes == tuple(names)
    assert classes_of(dataset) == {"74225": "Folding something", "3": "Showing something behind something"}
    assert (dataset.missing, dataset.unlisted) == ((), ()), "all subsets lie in one folder"
    mini = jostle.load_dataset("mini-ssv2", root=tmp_path)
    assert "Folding [something]" in mini.labels.classes
    assert classes_of(mini)["74225"] == "Folding [something]"
    assert len(mini.labels.classes) == 87


def test_something_something_as_image_folders(tmp_path: Path) -> None:
    write_text(tmp_path / "sthv2_val_list_rawframes.txt", "74225 36 1\n3 48 0\n")
    for video in ("74225", "3"):
        write_text(tmp_path / "rawframes" / video / "img_00001.jpg")
    dataset = jostle.load_dataset("ssv2", root=tmp_path)
    assert dataset.videos == {video: tmp_path / "rawframes" / video for video in ("74225", "3")}


def test_a_list_does_not_lead_outside(tmp_path: Path) -> None:
    write_text(tmp_path / "out" / "img_00001.jpg")
    write_text(tmp_path / "root" / "sthv2_val_list_rawframes.txt", f"../out 36 1\n{tmp_path}/out 36 1\n")
    assert len(jostle.load_dataset("ssv2", root=tmp_path / "root").missing) == 2


UCF = {
    "v_HandStandPushups_g01_c01": "HandstandPushups",
    "v_YoYo_g07_c02": "YoYo",
    "v_YoYo_g08_c01": "YoYo",
    "v_YoYo_g25_c01": "YoYo",
}


@pytest.mark.parametrize("videos", ["UCF-101/{k}/{c}.avi", "videos/{c}.mp4"])
def test_ucf101_with_its_split_files(videos: str, tmp_path: Path) -> None:
    write_text(tmp_path / "ucfTrainTestlist" / "classInd.txt", "1 ApplyLipstick\n2 HandstandPushups\n3 YoYo\n")
    lines = [f"{k}/{c}.avi\n" for c, k in UCF.items()]
    write_text(tmp_path / "ucfTrainTestlist" / "testlist01.txt", "".join(lines[:2]))
    write_text(tmp_path / "ucfTrainTestlist" / "trainlist01.txt", lines[2].strip() + " 3\n" + lines[3].strip() + " 3\n")
    write_text(tmp_path / "ucfTrainTestlist" / "testlist02.txt", lines[2])
    for clip, label in UCF.items():
        write_text(tmp_path / videos.format(c=clip, k=label))
    dataset = jostle.load_dataset("ucf101", root=tmp_path)
    assert list(dataset.videos) == list(UCF)[:2]
    assert dataset.labels.classes == ("ApplyLipstick", "HandstandPushups", "YoYo")
    assert (dataset.missing, dataset.unlisted) == ((), ())
    assert list(jostle.load_dataset("ucf101", "training", root=tmp_path).videos) == list(UCF)[2:]
    assert list(jostle.load_dataset("ucf101", "test-2", root=tmp_path).videos) == ["v_YoYo_g08_c01"]


def test_ucf101_without_lists_is_split_by_groups(tmp_path: Path) -> None:
    for clip, label in UCF.items():
        write_text(tmp_path / label / f"{clip}.avi")
    assert list(jostle.load_dataset("ucf101", root=tmp_path).videos) == list(UCF)[:2]
    assert list(jostle.load_dataset("ucf101", "test-2", root=tmp_path).videos) == ["v_YoYo_g08_c01"]
    assert len(jostle.load_dataset("ucf101", "training-3", root=tmp_path).videos) == 4


def test_hmdb51_with_its_split_files(tmp_path: Path) -> None:
    splits = tmp_path / "testTrainMulti_7030_splits"
    write_text(splits / "brush_hair_test_split1.txt", "a#1_b.avi 1 \nsame.avi 2 \nunused.avi 0 \n")
    write_text(splits / "wave_test_split1.txt", "same.avi 2 \nw w.avi 2 \n")
    write_text(splits / "wave_test_split2.txt", "same.avi 1 \n")
    for name in ("brush_hair/a#1_b", "brush_hair/same", "brush_hair/unused", "wave/same", "wave/w w"):
        write_text(tmp_path / "videos" / f"{name}.avi")
    dataset = jostle.load_dataset("hmdb51", root=tmp_path)
    assert classes_of(dataset) == {"brush_hair/same": "brush_hair", "wave/same": "wave", "wave/w w": "wave"}
    assert dataset.videos["wave/same"] == tmp_path / "videos/wave/same.avi"
    assert (dataset.missing, dataset.unlisted, dataset.source) == ((), (), splits)
    assert list(jostle.load_dataset("hmdb51", "training-2", root=tmp_path).labels.videos) == ["same"]
    write_text(splits / "wave_test_split3.txt", "same.avi 7\n")
    with pytest.raises(DataError, match=r"wave_test_split3.txt: line 1 is 'same.avi 7'"):
        jostle.load_dataset("hmdb51", "test-3", root=tmp_path)


def test_hmdb51_in_the_layout_of_mmaction2(tmp_path: Path) -> None:
    write_text(tmp_path / "hmdb51_val_split_1_videos.txt", "wave/a.avi 1\nbrush_hair/b.avi 0\n")
    write_text(tmp_path / "videos" / "wave" / "a.avi")
    dataset = jostle.load_dataset("hmdb51", root=tmp_path)
    assert (list(dataset.videos), dataset.missing) == (["a"], ("b",))
    with pytest.raises(DataError, match=r"searched for <class>_test_split2.txt, hmdb51_val_split_2_\*.txt"):
        jostle.load_dataset("hmdb51", "test-2", root=tmp_path)
