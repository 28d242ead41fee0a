"""Data sets of kitchens, homes, gestures and dives in small folders of their exact layouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
from helpers.laid_files import classes_of, rows_of, write_text
from jostle.errors import DataError

EPIC = (
    "narration_id,participant_id,video_id,narration_timestamp,start_timestamp,stop_timestamp,start_frame,stop_frame,"
    "narration,verb,verb_class,noun,noun_class,all_nouns,all_noun_classes\n"
    "P01_11_0,P01,P01_11,00:00:00.560,00:00:00.00,00:00:01.89,1,113,take plate,take,0,plate,2,['plate'],[2]\n"
    "P01_11_1,P01,P01_11,00:01:01.230,00:01:01.23,01:00:02.5,73,180151,put plate,put,1,plate,2,['plate'],[2]\n"
    "P01_12_0,P01,P01_12,00:00:02.000,00:00:02.00,00:00:03.00,120,180,\"open, slowly\",open,3,door,8,['door'],[8]\n"
)


@pytest.fixture
def epic(tmp_path: Path) -> Path:
    write_text(tmp_path / "annotations" / "EPIC_100_validation.csv", EPIC)
    write_text(tmp_path / "annotations" / "EPIC_100_train.csv", EPIC.replace("P01_1", "P02_0"))
    write_text(tmp_path / "P01" / "rgb_frames" / "P01_11" / "frame_0000000001.jpg")
    write_text(tmp_path / "P01" / "flow_frames" / "P01_11" / "u" / "frame_0000000001.jpg")
    write_text(tmp_path / "P01" / "flow_frames" / "P01_11" / "v" / "frame_0000000001.jpg")
    write_text(tmp_path / "P01" / "videos" / "P01_12.MP4")
    return tmp_path


def test_epic_kitchens_by_verb_and_by_noun(epic: Path) -> None:
    dataset = jostle.load_dataset("epic-kitchens-verbs", root=epic)
    assert (dataset.task, dataset.subset, dataset.missing, dataset.unlisted) == ("detection", "validation", (), ())
    assert rows_of(dataset.truth.actions["P01_11"]) == [("0", 0.0, 1.89), ("1", 61.23, 3602.5)]
    assert dataset.truth.label_ids == (0, 1, 3)
    assert dataset.videos == {
        "P01_11": epic / "P01" / "rgb_frames" / "P01_11",
        "P01_12": epic / "P01" / "videos" / "P01_12.MP4",
    }
    assert "2 skipped, optical flow" in dataset.notes[0]
    nouns = jostle.load_dataset("epic-kitchens-nouns", "training", root=epic)
    assert rows_of(nouns.truth.actions["P02_01"])[0] == ("2", 0.0, 1.89)
    assert nouns.missing == ("P02_01", "P02_02")


def test_epic_kitchens_takes_names_and_rates_from_the_lists_beside(epic: Path) -> None:
    write_text(
        epic / "EPIC_100_verb_classes.csv", "id,key,instances\n0,take,['take']\n1,put,['put']\n3,open,['open']\n"
    )
    write_text(epic / "EPIC_100_video_info.csv", "video_id,duration,fps,resolution\nP01_11,1.0,59.94,1920x1080\n")
    dataset = jostle.load_dataset("epic-kitchens-verbs", root=epic)
    assert dataset.truth.classes == ("take", "put", "open")
    assert (str(dataset.rate_of("P01_11")), dataset.rate_of("P01_12")) == ("60000/1001", None)
    write_text(epic / "EPIC_100_verb_classes.csv", "id,key,instances\n0,take,['take']\n")
    with pytest.raises(DataError, match="class 1 is not in the list of 1 verbs"):
        jostle.load_dataset("epic-kitchens-verbs", root=epic)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("00:00:02.00", "2 s", "'2 s'"),
        (",open,3,", ",open,,", "line 4 names no video or no verb_class"),
        ("stop_timestamp", "stop", "no column 'stop_timestamp'"),
    ],
)
def test_damaged_epic_kitchens_annotations_are_refused(before: str, after: str, message: str, tmp_path: Path) -> None:
    write_text(tmp_path / "EPIC_100_validation.csv", EPIC.replace(before, after))
    with pytest.raises(DataError, match=message):
        jostle.load_dataset("epic-kitchens-verbs", root=tmp_path)


CHARADES = (
    "id,subject,scene,quality,relevance,verified,script,objects,descriptions,actions,length\n"
    '46GP8,HR43,Kitchen,6,7,Yes,"A person cooks, and eats.",food;stove,x,c092 11.90 21.20;c147 0.00 12.60,24.83\n'
    "N11GT,0KZ7,Stairs,5,7,Yes,A person stands.,phone,x,,32.12\n"
)


def test_charades(tmp_path: Path) -> None:
    write_text(tmp_path / "Charades_v1_test.csv", CHARADES)
    write_text(tmp_path / "Charades_v1_train.csv", CHARADES.replace("46GP8", "TRAIN"))
    write_text(tmp_path / "Charades_v1_480" / "46GP8.mp4")
    dataset = jostle.load_dataset("charades", root=tmp_path)
    assert rows_of(dataset.truth.actions["46GP8"]) == [("c092", 11.9, 21.2), ("c147", 0.0, 12.6)]
    assert (dataset.truth.videos, dataset.missing) == (("46GP8", "N11GT"), ("N11GT",))
    names = write_text(
        tmp_path / "Charades_v1_classes.txt", "c092 Watching a window\nc147 Someone is cooking something\n"
    )
    named = jostle.load_dataset("charades", root=tmp_path)
    assert named.truth.classes == ("Watching a window", "Someone is cooking something")
    names.write_text("Watching\n")
    with pytest.raises(DataError, match="line 1 is 'Watching', not 'c000 name'"):
        jostle.load_dataset("charades", root=tmp_path)
    names.unlink()
    write_text(tmp_path / "Charades_v1_test.csv", CHARADES.replace("c147 0.00", "c147"))
    with pytest.raises(DataError, match=r"action 2 of line 2 is 'c147 12\.60', not a class, a start and an end"):
        jostle.load_dataset("charades", root=tmp_path)


def test_hacs_and_fineaction(tmp_path: Path) -> None:
    def entry(subset: str, label: str) -> dict[str, object]:
        dataset = [{"label": label, "segment": [5.4, 11.6]}]
        return {"annotations": dataset, "subset": subset, "duration": "92.166667", "url": "https://x"}

    hacs = {"--0edUL8zmA": entry("training", "Dodgeball"), "0-1_2_3_4_5": entry("validation", "Archery")}
    write_text(tmp_path / "hacs" / "HACS_v1.1.1" / "HACS_segments_v1.1.1.json", json.dumps({"database": hacs}))
    write_text(tmp_path / "hacs" / "videos" / "v_0-1_2_3_4_5.mp4")
    dataset = jostle.load_dataset("hacs", root=tmp_path / "hacs")
    assert rows_of(dataset.truth.actions["0-1_2_3_4_5"]) == [("Archery", 5.4, 11.6)]
    assert (dataset.truth.duration.tolist(), dataset.missing) == ([92.166667], ())
    fine = {"v_00000001": entry("validation", "walk the dog"), "v_00000002": entry("testing", "x")}
    write_text(tmp_path / "fine" / "annotations_gt.json", json.dumps({"version": "1", "database": fine}))
    write_text(tmp_path / "fine" / "v_00000001.mp4")
    assert jostle.load_dataset("fineaction", root=tmp_path / "fine").truth.videos == ("v_00000001",)


def test_ego4d_moments(tmp_path: Path) -> None:
    labels = [
        {"primary": True, "label": "wash_hands", "start_time": 1.5, "end_time": 3.0, "video_start_time": 101.5},
        {"primary": False, "label": "walk", "start_time": 0.0, "end_time": 9.0},
    ]
    clip = {"clip_uid": "c-1", "video_start_sec": 100.0, "video_end_sec": 580.0, "annotations": [{"labels": labels}]}
    videos = [{"video_uid": "v-1", "split": "val", "clips": [clip, {"clip_uid": "c-2", "annotations": []}]}]
    write_text(tmp_path / "moments_val.json", json.dumps({"version": "1", "videos": videos}))
    write_text(tmp_path / "clips" / "c-1.mp4")
    dataset = jostle.load_dataset("ego4d-moments", root=tmp_path)
    assert rows_of(dataset.truth.actions["c-1"]) == [("wash_hands", 1.5, 3.0)]
    assert (dataset.truth.videos, dataset.truth.duration[0], dataset.missing) == (("c-1", "c-2"), 480.0, ("c-2",))
    videos[0]["clips"] = "none"
    write_text(tmp_path / "moments_val.json", json.dumps({"videos": videos}))
    with pytest.raises(DataError, match=r"'clips' of video 0 is .*, not a list"):
        jostle.load_dataset("ego4d-moments", root=tmp_path)


def test_egtea_clips_and_sessions(tmp_path: Path) -> None:
    clips = ["OP01-R01-PastaSalad-1002316-1004005-F024051-F024101", "P07-R01-PastaSalad-91730-93630-F002201-F002246"]
    write_text(tmp_path / "action_annotation" / "test_split1.txt", f"{clips[0]} 1 1 1\n{clips[1]} 3 2 3 4\n")
    write_text(tmp_path / "cropped_clips" / "OP01-R01-PastaSalad" / f"{clips[0]}.mp4")
    dataset = jostle.load_dataset("egtea", root=tmp_path)
    assert (classes_of(dataset), dataset.missing) == ({clips[0]: "0", clips[1]: "2"}, (clips[1],))
    write_text(
        tmp_path / "action_annotation" / "action_idx.txt", "Inspect/Read recipe 1\nClose drawer 2\nTake fork 3\n"
    )
    assert classes_of(jostle.load_dataset("egtea", root=tmp_path))[clips[1]] == "Take fork"
    raw = write_text(
        tmp_path / "raw_annotations" / "action_labels.csv",
        "# Clip ID (Unique); Clip Prefix (Unique); Video Session; Starting Time (ms); Ending Time (ms); Action Label; "
        "Verb Label; Noun Label(s)\n"
        "1; P05-R01-PastaSalad-583261-586055; P05-R01-PastaSalad; 583261; 586055; Transfer cucumber,bowl; Transfer; "
        "cucumber,bowl\n",
    )
    truth = jostle.load_truth(raw)
    assert rows_of(truth.actions["P05-R01-PastaSalad"]) == [("Transfer cucumber,bowl", 583.261, 586.055)]


def test_diving48(tmp_path: Path) -> None:
    dives = [{"vid_name": "a_0", "label": 1, "start_frame": 0, "end_frame": 9}]
    dives += [{"vid_name": "b_0", "label": 0, "start_frame": 0, "end_frame": 5}]
    write_text(tmp_path / "Diving48_V2_test.json", json.dumps(dives))
    write_text(tmp_path / "rgb" / "a_0" / "00001.jpg")
    dataset = jostle.load_dataset("diving48", root=tmp_path)
    assert (classes_of(dataset), dataset.missing) == ({"a_0": "1", "b_0": "0"}, ("b_0",))
    assert dataset.videos == {"a_0": tmp_path / "rgb" / "a_0"}
    vocabulary = [["Back", "15som", "05Twis", "FREE"], ["Back", "15som", "15Twis", "FREE"]]
    write_text(tmp_path / "Diving48_vocab.json", json.dumps(vocabulary))
    assert classes_of(jostle.load_dataset("diving48", root=tmp_path))["a_0"] == "Back-15som-15Twis-FREE"
    write_text(tmp_path / "Diving48_V2_test.json", json.dumps([{"vid_name": "a_0", "label": 2}]))
    with pytest.raises(DataError, match=r"entry 0 is .*, without a 'vid_name' and a 'label' of the vocabulary"):
        jostle.load_dataset("diving48", root=tmp_path)


def test_jester(tmp_path: Path) -> None:
    write_text(tmp_path / "jester-v1-validation.csv", "34870;Drumming Fingers\n9;Stop Sign\n")
    write_text(tmp_path / "jester-v1-labels.csv", "Stop Sign\nDrumming Fingers\nNo gesture\n")
    write_text(tmp_path / "20bn-jester-v1" / "34870" / "00001.jpg")
    dataset = jostle.load_dataset("jester", root=tmp_path, fps=12)
    assert dataset.labels.classes == ("Stop Sign", "Drumming Fingers", "No gesture")
    assert (classes_of(dataset)["34870"], dataset.missing) == ("Drumming Fingers", ("9",))
    assert dataset.rate_of("34870") == 12
    write_text(tmp_path / "jester-v1-validation.csv", "34870\n")
    with pytest.raises(DataError, match="line 1 is '34870', not 'id;class'"):
        jostle.load_dataset("jester", root=tmp_path)


def test_moments_in_time(tmp_path: Path) -> None:
    write_text(
        tmp_path / "validationSet.csv",
        "sleeping/yt-a_1.mp4,sleeping,3,0\nadult+female+singing/b.mp4,adult+female+singing,2,1\n",
    )
    write_text(tmp_path / "moments_categories.txt", "adult+female+singing,1\nsleeping,0\n")
    write_text(tmp_path / "validation" / "sleeping" / "yt-a_1.mp4")
    dataset = jostle.load_dataset("moments-in-time", root=tmp_path)
    assert dataset.labels.classes == ("sleeping", "adult+female+singing")
    assert (classes_of(dataset)["b"], dataset.missing) == ("adult+female+singing", ("b",))
    write_text(tmp_path / "moments_categories.txt", "sleeping,0\nsleeping,0\n")
    with pytest.raises(DataError, match="line 2 is 'sleeping,0', not 'class,number', each once"):
        jostle.load_dataset("moments-in-time", root=tmp_path)


@pytest.mark.parametrize("listed", [True, False])
def test_ucf101_ds_counts_by_the_classes_of_ucf101(listed: bool, tmp_path: Path) -> None:
    if listed:
        write_text(
            tmp_path / "ucf101-DS_eval.csv",
            "filename,label,shift\nx1.mp4,BilliardsShot,style\nx2.mp4,CleanandJerk,scene\n",
        )
    write_text(tmp_path / "BilliardsShot" / "x1.mp4")
    write_text(tmp_path / "CleanandJerk" / "x2.mp4")
    dataset = jostle.load_dataset("ucf101-ds", root=tmp_path)
    assert classes_of(dataset) == {"x1": "Billiards", "x2": "CleanAndJerk"}
    assert (len(dataset.labels.classes), dataset.labels.classes[11], dataset.missing) == (101, "Billiards", ())
