"""THUMOS14, MultiTHUMOS and ActivityNet in small folders of every common layout."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import jostle
from helpers.laid_files import write_text
from jostle.errors import BadValue, DataError, UnknownName

Segment = tuple[str, float, float]
VIDEOS: dict[str, tuple[str, list[Segment]]] = {
    "video_validation_0000051": ("Validation", [("Billiards", 1.0, 2.0)]),
    "video_test_0000004": ("Test", [("Diving", 0.2, 1.1), ("CliffDiving", 0.2, 1.1)]),
    "video_test_0000006": ("Test", [("Billiards", 3.0, 4.5)]),
}


def database(videos: Mapping[str, tuple[str, Sequence[Segment]]], **extra: object) -> str:
    entries = {
        video: {
            "subset": subset,
            "duration": 9.0,
            "annotations": [{"label": k, "segment": [s, e], **extra} for k, s, e in segments],
        }
        for video, (subset, segments) in videos.items()
    }
    return json.dumps({"version": "x", "taxonomy": [], "database": entries})


@pytest.mark.parametrize(
    ("annotations", "videos"),
    [
        ("annotations/thumos14.json", "videos/{}.mp4"),
        ("thumos14.json", "{}.MP4"),
        ("thumos/annotations/thumos_14_anno.json", "thumos/raw_data/video/{}.avi"),
        ("Annotations/THUMOS14_gt.JSON", "TH14_test_set_mp4/{}.mkv"),
    ],
)
def test_thumos14_as_json(annotations: str, videos: str, tmp_path: Path) -> None:
    source = write_text(tmp_path / annotations, database(VIDEOS))
    for video in VIDEOS:
        write_text(tmp_path / videos.format(video))
    dataset = jostle.load_dataset("thumos14", root=tmp_path)
    assert (dataset.task, dataset.subset, dataset.source, dataset.folder) == ("detection", "test", source, tmp_path)
    assert dataset.truth.videos == ("video_test_0000004", "video_test_0000006")
    assert len(dataset.truth) == 3, "one segment with two classes is two instances"
    assert dataset.videos == {video: tmp_path / videos.format(video) for video in dataset.truth.videos}
    assert (dataset.missing, dataset.unlisted, dataset.notes) == ((), (), ())
    assert str(dataset) == "thumos14 test: 2 of 2 videos"
    training = jostle.load_dataset("thumos14", "validation", root=tmp_path)
    assert training.truth.videos == ("video_validation_0000051",)


def test_the_two_files_of_detad_are_distinguished_by_name(tmp_path: Path) -> None:
    for short, long in (("test", "testing"), ("val", "validation")):
        own = {v: (long, s) for v, (subset, s) in VIDEOS.items() if subset.lower().startswith(short)}
        text = database(own, length=1.0, coverage=0.1)
        with gzip.open(tmp_path / f"thumos14_{short}_extra_characteristics.json.gz", "wt") as file:
            file.write(text)
    dataset = jostle.load_dataset("thumos14", "test", root=tmp_path)
    assert "coverage" in dataset.truth.characteristics
    assert len(dataset.truth.videos) == 2
    assert jostle.load_dataset("thumos14", "validation", root=tmp_path).truth.classes == ("Billiards",)


def test_the_official_text_in_its_two_folders(tmp_path: Path) -> None:
    test, val = tmp_path / "TH14_Temporal_annotations_test/annotation", tmp_path / "val_annotation/annotation"
    write_text(test / "Diving_test.txt", "video_test_0000004  0.2 1.1\n")
    write_text(test / "Ambiguous_test.txt", "video_test_0000004  5.0 6.0\n")
    write_text(val / "Diving_val.txt", "video_validation_0000051  0.5 1.5\n")
    dataset = jostle.load_dataset("thumos14", "test", root=tmp_path)
    assert (dataset.source, len(dataset.truth), len(dataset.truth.ambiguous)) == (test, 1, 1)
    assert jostle.load_dataset("thumos14", "validation", root=tmp_path).source == val


def test_a_file_of_predictions_is_no_candidate(tmp_path: Path) -> None:
    results = {"version": "", "results": {"video_test_0000004": [{"label": "Diving", "segment": [0, 1], "score": 0.5}]}}
    write_text(tmp_path / "thumos14_results.json", json.dumps(results))
    write_text(tmp_path / "thumos14_gt.json", database(VIDEOS))
    dataset = jostle.load_dataset("thumos14", root=tmp_path)
    assert dataset.source == tmp_path / "thumos14_gt.json"


def test_a_partial_copy_reports_missing_videos(tmp_path: Path) -> None:
    write_text(tmp_path / "thumos14.json", database(VIDEOS))
    write_text(tmp_path / "video_test_0000006.mp4")
    write_text(tmp_path / "stray.webm")
    write_text(tmp_path / "val" / "video_validation_0000099.mp4")
    dataset = jostle.load_dataset("thumos14", root=tmp_path)
    assert dataset.missing == ("video_test_0000004",)
    assert dataset.unlisted == (tmp_path / "stray.webm",), "one in a folder of validation is not"
    assert str(dataset) == (
        "thumos14 test: 1 of 2 videos (1 missing: video_test_0000004; 1 files without annotations: stray.webm)"
    )
    assert len(dataset.truth.videos) == 2, "what is annotated does not depend on the copy"
    available = dataset.at_hand()
    assert available.truth.videos == ("video_test_0000006",)
    assert available.missing == ()
    assert available.at_hand() is available


def test_two_files_of_one_video_are_refused_unless_one_fits_the_subset(tmp_path: Path) -> None:
    write_text(tmp_path / "thumos14.json", database(VIDEOS))
    write_text(tmp_path / "a" / "video_test_0000004.mp4")
    write_text(tmp_path / "validation" / "video_test_0000004.mp4")
    with pytest.raises(
        DataError, match=r"1 video\(s\) have more than one file: video_test_0000004 \(a/.* and val"
    ) as no:
        jostle.load_dataset("thumos14", root=tmp_path)
    assert no.value.fault == "F20"
    (tmp_path / "a").rename(tmp_path / "test")
    dataset = jostle.load_dataset("thumos14", root=tmp_path)
    assert dataset.videos["video_test_0000004"] == tmp_path / "test/video_test_0000004.mp4"


def test_links_inside_a_root_are_followed(tmp_path: Path) -> None:
    root, disk = tmp_path / "root", tmp_path / "disk"
    write_text(root / "thumos14.json", database(VIDEOS))
    write_text(disk / "more" / "video_test_0000004.mp4")
    write_text(disk / "video_test_0000006.mp4")
    (root / "videos").symlink_to(disk)
    (root / "up").symlink_to(tmp_path)
    dataset = jostle.load_dataset("thumos14", root=root)
    assert dataset.missing == ()
    assert dataset.videos["video_test_0000006"] == root / "videos/video_test_0000006.mp4"
    assert dataset.notes == (f"1 skipped, link to a folder outside the root: {root / 'up'}",)
    (root / "videos").unlink()
    (root / "deep").mkdir()
    (root / "deep" / "videos").symlink_to(disk)
    (root / "video_test_0000006.mp4").symlink_to(disk / "video_test_0000006.mp4")
    hidden = jostle.load_dataset("thumos14", root=root)
    assert len(hidden.missing) == 2
    assert len(hidden.notes) == 2


def test_a_wrong_root_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such folder; give the one that holds .* of THUMOS14"):
        jostle.load_dataset("thumos14", root=tmp_path / "nowhere")
    write_text(tmp_path / "readme.txt")
    with pytest.raises(DataError, match=r"searched for thumos14.json, .* holds readme.txt; put .*get-the-data.md"):
        jostle.load_dataset("thumos14", root=tmp_path)
    with pytest.raises(BadValue, match="give the folder with its annotations and videos as root"):
        jostle.load_dataset("thumos14")
    with pytest.raises(UnknownName, match="no subset of thumos14 is called 'training'"):
        jostle.load_dataset("thumos14", "training", root=tmp_path)


def test_ambiguous_annotations_are_refused(tmp_path: Path) -> None:
    one, two = (write_text(tmp_path / name / "thumos14.json", database(VIDEOS)) for name in "ab")
    assert jostle.load_dataset("thumos14", root=tmp_path).source == one, "copies are one"
    two.write_text(database(VIDEOS) + "\n")
    with pytest.raises(DataError, match=r"2 places could be the annotations of THUMOS14.*annotations=") as refused:
        jostle.load_dataset("thumos14", root=tmp_path)
    assert refused.value.fault == "F20"
    assert jostle.load_dataset("thumos14", root=tmp_path, annotations=two).source == two


@pytest.mark.parametrize(
    ("file", "text", "message", "fault"),
    [
        ("thumos14_cut.json", database(VIDEOS)[:-20], "broken JSON", "F27"),
        ("thumos14.json", database({"v": ("Test", [("Diving", 0.0, 1.0)])}), "Test", "F29"),  # the subset that there is
    ],
)
def test_broken_annotations_and_unknown_subsets_are_refused(
    file: str, text: str, message: str, fault: str, tmp_path: Path
) -> None:
    write_text(tmp_path / file, text)
    with pytest.raises(DataError, match=message) as refused:
        jostle.load_dataset("thumos14", "validation", root=tmp_path)
    assert refused.value.fault == fault


MULTITHUMOS = {
    "video_test_0000004": {"subset": "testing", "duration": 9.0, "actions": [[8, 0.2, 1.1], [26, 1.0, 2.0]]},
    "video_validation_0000051": {"subset": "training", "duration": 9.0, "actions": [[3, 1.0, 2.0]]},
}


def test_multithumos_as_json_is_named_by_the_official_list(tmp_path: Path) -> None:
    write_text(tmp_path / "multithumos.json", json.dumps(MULTITHUMOS))
    write_text(tmp_path / "videos" / "video_test_0000004.mp4")
    assert jostle.load_dataset("multithumos", root=tmp_path).truth.classes == ("8", "26")
    write_text(tmp_path / "class_list.txt", "3 Billiards\n8 Diving\n26 Fall\n")
    dataset = jostle.load_dataset("multithumos", root=tmp_path)
    assert (dataset.truth.classes, dataset.truth.label_ids) == (("Diving", "Fall"), (8, 26))
    assert dataset.missing == ()
    assert jostle.load_dataset("multithumos", "training", root=tmp_path).truth.classes == ("Billiards",)


def test_multithumos_as_official_text(tmp_path: Path) -> None:
    folder = tmp_path / "multithumos" / "annotations"
    write_text(folder / "Diving.txt", "video_test_0000004 0.2 1.1\nvideo_validation_0000051 3.0 4.0\n")
    write_text(folder / "Fall.txt", "video_test_0000004 1.0 2.0\n\n")
    write_text(folder / "README", "x")
    dataset = jostle.load_dataset("multithumos", root=tmp_path)
    assert (dataset.source, dataset.truth.classes, len(dataset.truth)) == (folder, ("Diving", "Fall"), 2)
    assert len(jostle.load_dataset("multithumos", "training", root=tmp_path).truth) == 1


ANET = {
    "QOlSCBRmfWY": ("validation", [("Ballet", 6.0, 77.0)]),
    "-HCYKzyZ8eh": ("training", [("Doing crunches", 1.0, 2.0)]),
    "v_abcdefghi": ("validation", []),
}


@pytest.mark.parametrize("videos", ["v1-3/train_val/v_{}.mp4", "{}.mkv"])
def test_activitynet_in_its_published_layout(videos: str, tmp_path: Path) -> None:
    write_text(tmp_path / "activity_net.v1-3.min.json", database(ANET))
    for video in ANET:
        write_text(tmp_path / videos.format(video))
    dataset = jostle.load_dataset("activitynet", root=tmp_path)
    assert dataset.subset == "validation"
    assert list(dataset.videos) == ["QOlSCBRmfWY", "v_abcdefghi"]
    assert (dataset.missing, dataset.unlisted) == ((), ())
    assert list(jostle.load_dataset("activitynet", "training", root=tmp_path).videos) == ["-HCYKzyZ8eh"]


def test_activitynet_of_bmn_takes_its_subsets_from_the_list_of_videos(tmp_path: Path) -> None:
    entries = {
        f"v_{video}": {"duration_second": 80.0, "annotations": [{"segment": [s, e], "label": k} for k, s, e in parts]}
        for video, (_, parts) in ANET.items()
    }
    write_text(tmp_path / "anet_anno_action.json", json.dumps(entries))
    write_text(tmp_path / "val" / "QOlSCBRmfWY.mp4")
    with pytest.raises(DataError, match="do not say which subset a video is in") as refused:
        jostle.load_dataset("activitynet", root=tmp_path)
    assert refused.value.fault == "F29"
    rows = "".join(f"v_{video},80,{subset}\n" for video, (subset, _) in ANET.items())
    write_text(tmp_path / "video_info_new.csv", "video,seconds,subset\n" + rows)
    dataset = jostle.load_dataset("activitynet", root=tmp_path)
    assert dataset.truth.videos == ("v_QOlSCBRmfWY", "v_v_abcdefghi")
    assert dataset.videos == {"v_QOlSCBRmfWY": tmp_path / "val/QOlSCBRmfWY.mp4"}
    assert dataset.missing == ("v_v_abcdefghi",)


def test_activitynet_of_tsp_has_its_subset_in_the_file_name(tmp_path: Path) -> None:
    header = "video-name,t-start,t-end,action-label,video-duration,filename,fps,video-frames,temporal-region-label\n"
    write_text(
        tmp_path / "activitynet_v1-3_valid_tsp.csv", header + "QOlSCBRmfWY,6,77,Ballet,80,v_x.mp4,30,2400,Action\n"
    )
    write_text(
        tmp_path / "activitynet_v1-3_train_tsp.csv", header + "-HCYKzyZ8eh,1,2,Doing crunches,80,x,30,2400,Action\n"
    )
    assert jostle.load_dataset("activitynet", root=tmp_path).truth.videos == ("QOlSCBRmfWY",)
    assert jostle.load_dataset("activitynet", "training", root=tmp_path).truth.classes == ("Doing crunches",)
