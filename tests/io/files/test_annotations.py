"""Reading, writing and converting annotations and predictions in every format."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.refusals import refused
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError, UnknownName
from jostle.io.files.annotations import (
    convert,
    read_predictions,
    read_truth,
    read_video_labels,
    segments_of,
    write_predictions,
    write_truth,
    write_video_labels,
)
from jostle.io.files.format import formats
from jostle.io.files.truth_table import variant_of

SHARED = Path(__file__).parents[4] / "shared"


def annotated(*segments: Any, **facts: Any) -> dict[str, Any]:
    return {"subset": "validation", "annotations": [{"label": "Run", "segment": s} for s in segments], **facts}


def write(folder: Path, database: Any, **others: Any) -> Path:
    path = folder / "gt.json"
    path.write_text(json.dumps({"database": database, **others}), encoding="utf-8")
    return path


def write_text(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    swim = {"label": "Swim", "segment": [0, 1.5], "segment(frames)": [0, 45], "label_id": 1}
    runs = [{"label": "Run", "segment": [1.0, 2.5], "label_id": 4}, {"label": "Run", "segment": [4, 5], "label_id": 4}]
    database = {
        "v_1": {"subset": "validation", "duration": 4.5, "url": "x", "resolution": "320x240", "annotations": runs},
        "v_2": {"subset": "Test", "duration": 9, "fps": 29.97, "annotations": [swim]},
        "v_3": {"subset": "Test"},
    }
    return write(tmp_path, database, version="1.3", taxonomy=[])


def test_truth_keeps_the_order_of_the_file(toy: Path) -> None:
    truth = read_truth(toy)
    assert truth.videos == ("v_1", "v_2", "v_3")
    assert truth.classes == ("Run", "Swim")
    assert truth.label_ids == (4, 1)
    assert truth.video.tolist() == [0, 0, 1]
    assert (truth.start.tolist(), truth.end.tolist()) == ([1, 4, 0], [2.5, 5, 1.5])
    assert truth.subsets == ("validation", "Test", "Test")
    np.testing.assert_equal(truth.duration, [4.5, 9, np.nan])
    np.testing.assert_equal(truth.fps, [np.nan, 29.97, np.nan])
    test = read_truth(toy, subset="TEST")
    assert (test.videos, test.classes, test.label_ids, test.subset) == (("v_2", "v_3"), ("Swim",), (1,), "Test")


def test_characteristics_of_detad(tmp_path: Path) -> None:
    first = {"label": "a", "segment": [0, 2], "num_instances": 3, "context-size": None, "coverage": 0.5}
    first["all-segments"] = [[0, 2], [0.5, 2]]
    second = {"label": "a", "segment": [3, 4], "num-instances": 2, "all-segments": None}
    truth = read_truth(write(tmp_path, {"v": {"annotations": [first, second]}}))
    assert list(truth.characteristics) == ["coverage", "num-instances"]
    assert truth.characteristics["num-instances"].tolist() == [3, 2]
    np.testing.assert_equal(truth.characteristics["coverage"], [0.5, np.nan])
    assert truth.all_segments is not None
    assert [s.tolist() for s in truth.all_segments] == [[[0, 2], [0.5, 2]], []]


def test_ids_match_under_nfc_and_twins_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"cafe\u0301": annotated([0, 1])})
    assert read_truth(path).videos == ("caf\u00e9",)
    assert len(segments_of(path, "caf\u00e9")) == len(segments_of(path, "cafe\u0301")) == 1
    path = write(tmp_path, {"cafe\u0301": annotated(), "caf\u00e9": annotated()})
    with refused("F22", DataError, match="are one id in two Unicode forms; keep one of them"):
        read_truth(path)
    both = write_text(tmp_path, "p.json", '{"results": {"cafe\\u0301": [], "caf\\u00e9": []}}')
    with pytest.raises(DataError, match="appears in two Unicode forms; keep one of them"):
        read_predictions(both)


def test_segments_of_one_video(toy: Path) -> None:
    assert segments_of(toy, "v_1").start.tolist() == [1, 4]
    assert len(segments_of(str(toy), "v_3", subset="test")) == 0
    with pytest.raises(DataError, match="video v_1 is in subset 'validation', not in 'test'; name its subset, or none"):
        segments_of(toy, "v_1", subset="test")
    with pytest.raises(DataError, match=r"no video is in subset 'x'; name one of those present: Test \(2\), valid"):
        segments_of(toy, "v_1", subset="x")


def test_segments_of_one_video_in_other_formats(tmp_path: Path) -> None:
    (tmp_path / "Run_test.txt").write_text("a 0 1\nb 5 4\n")
    assert segments_of(tmp_path, "a").end.tolist() == [1]
    table = write_text(tmp_path, "t.csv", "video,start,end,label\na,0,1,Run\nb,5,4,Run\n")
    assert segments_of(table, "a").end.tolist() == [1]


def test_errors_in_other_videos_do_not_affect_a_valid_one(tmp_path: Path) -> None:
    path = write(tmp_path, {"good": annotated([0, 1]), "bad": annotated([1, 1]), "worse": annotated([2, 1], fps="x")})
    assert len(segments_of(path, "good")) == 1
    with pytest.raises(DataError, match="video bad: the segment of annotation 0 has no length"):
        segments_of(path, "bad")


def test_unknown_video_gets_near_names(toy: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        segments_of(toy, "v1")
    assert str(caught.value) == f"no video in {toy} is called 'v1': did you mean v_1?"
    with pytest.raises(UnknownName, match="is called 'other': known: v_1, v_2, v_3"):
        segments_of(toy, "other")
    path = write(tmp_path, {f"clip{i:03}": annotated() for i in range(100)})
    with pytest.raises(UnknownName, match=r"known: clip000, clip001, clip002, clip003, clip004 and 95 more$"):
        segments_of(path, "zzz")


@pytest.mark.parametrize(
    "header",
    [
        "video_id,t_start,t_end,label,score",
        "video-id,t-start,t-end,class,confidence",
        "Video,Start,End,Category,Conf",
        "filename,begin,stop,label,score",
        "\ufeffvideo_id,t_start,t_end,label,score",
    ],
)
def test_column_names_of_many_programs_are_known(tmp_path: Path, header: str) -> None:
    path = write_text(tmp_path, "any.txt", header + '\r\n"a ""b"", c",0.5,1.5,"Long, jump",0.25\r\n\r\nv,2,3,Run,1\r\n')
    predictions = read_predictions(path)
    assert predictions.videos == ('a "b", c', "v")
    assert predictions.classes == ("Long, jump", "Run")
    assert (predictions.start.tolist(), predictions.score.tolist()) == ([0.5, 2], [0.25, 1])


def test_a_table_with_other_separators_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its columns are separated by ';'; save it with commas"):
        read_predictions(write_text(tmp_path, "a.csv", "video;start;end;label;score\nv;0;1;Run;1\n"))
    with pytest.raises(DataError, match="no column of labels; name one of label, class, category, action_label, found"):
        read_predictions(write_text(tmp_path, "a.csv", "video,start,end,score\nv,0,1,1\n"))


def test_the_name_of_a_file_does_not_matter(toy: Path, tmp_path: Path) -> None:
    for name in ("gt.csv", "gt.pkl", "gt"):
        (tmp_path / name).write_bytes(gzip.compress(toy.read_bytes()))
        assert read_truth(tmp_path / name).fingerprint == read_truth(toy).fingerprint


def test_thumos14_text_truth(tmp_path: Path) -> None:
    write_text(tmp_path, "Diving_test.txt", "v1  0.5 1.5\nv2 3 4\n")
    write_text(tmp_path, "CliffDiving_test.txt", "v1 0.5 1.5\n")
    write_text(tmp_path, "Ambiguous_test.txt", "v3 0 9\n")
    write_text(tmp_path, "readme.txt", "no annotations\n")
    truth = read_truth(tmp_path)
    assert (truth.classes, truth.label_ids) == (("CliffDiving", "Diving"), None)
    write_text(tmp_path, "detclasslist.txt", "26 Diving\n22 CliffDiving\n51 LongJump\n")
    truth = read_truth(tmp_path, subset="test")
    assert (truth.classes, truth.label_ids) == (("Diving", "CliffDiving"), (26, 22))
    assert truth.videos[truth.ambiguous.video[0]] == "v3"
    assert (truth.ambiguous.start.tolist(), truth.ambiguous.end.tolist()) == ([0], [9])


def test_lists_for_recognition(tmp_path: Path) -> None:
    labels = read_video_labels(write_text(tmp_path, "train.csv", "some dir/a.mp4 3\nsome dir/b.mp4 0 3\n"))
    assert (labels.videos, labels.classes, labels.numbered) == (("a", "b"), ("3", "0"), True)
    assert (labels.video.tolist(), labels.label.tolist()) == ([0, 1, 1], [0, 1, 0])
    assert labels.paths == ("some dir/a.mp4", "some dir/b.mp4")
    labels = read_video_labels(write_text(tmp_path, "frames.txt", "x/a 120 3\ny/a 90 1"))
    assert (labels.videos, labels.classes, list(labels.frames)) == (("x/a", "y/a"), ("3", "1"), [120, 90])
    labels = read_video_labels(
        write_text(tmp_path, "testlist01.txt", "Diving/v_Diving_g01_c01.avi\nRun/v_Run_g01_c02.avi 7\n")
    )
    assert (labels.videos, labels.classes) == (("v_Diving_g01_c01", "v_Run_g01_c02"), ("Diving", "Run"))
    table = "label,youtube_id,time_start,time_end,split\nrunning on,-abc,20,30,val\njump,xyz,0,10,train\n"
    labels = read_video_labels(write_text(tmp_path, "kinetics.csv", table))
    assert (labels.videos, labels.classes) == (("-abc_000020_000030", "xyz_000000_000010"), ("running on", "jump"))
    assert read_video_labels(tmp_path / "kinetics.csv", subset="VAL").classes == ("running on",)
    with pytest.raises(DataError, match=r"no video is in subset 'test'; name one of those present: train \(1\), val"):
        read_video_labels(tmp_path / "kinetics.csv", subset="test")


def test_labels_of_ground_truth_and_of_predictions(toy: Path, tmp_path: Path) -> None:
    labels = read_video_labels(toy)
    assert (labels.videos, labels.video.tolist(), labels.label.tolist()) == (("v_1", "v_2", "v_3"), [0, 1], [0, 1])
    assert labels.score is None
    scored = write_text(
        tmp_path, "p.json", '{"results": {"v": [{"label": "Run", "score": 0.5}, {"label": "Swim", "score": 1}]}}'
    )
    labels = read_video_labels(scored)
    assert labels.score is not None
    assert (labels.classes, labels.score.tolist()) == (("Run", "Swim"), [0.5, 1])


@pytest.mark.parametrize(
    ("entry", "fault", "message"),
    [
        ({"label": "Run", "score": "1"}, "F41", "entry 1 has the text '1' as its score, not a number"),
        ({"label": "Run", "score": float("nan")}, "F40", "entry 1 has the score nan, which is not finite; correct it"),
        ({"label": None, "score": 1}, "F45", "entry 1 has null as its label, not a class"),
        ({"label": 3, "score": 1}, "F45", "some labels are numbers and some are names; use one kind"),
        ({"label": "Run", "score": 1, "segment": [0, 1]}, "F28", "entry 1 is not a label with a score"),
    ],
)
def test_invalid_labels_of_predictions_are_refused(
    tmp_path: Path, entry: dict[str, Any], fault: str, message: str
) -> None:
    results = {"results": {"v": [{"label": "Run", "score": 0.5}, entry]}}
    with refused(fault, DataError) as caught:
        read_video_labels(write_text(tmp_path, "p.json", json.dumps(results)))
    assert message in str(caught.value)


def test_a_proposal_table_is_named_after_its_video(tmp_path: Path) -> None:
    text = "action,start,end,tmin,tmax\n0.9,0.1,0.2,0.0,0.01\n0.5,0.1,0.2,0.01,0.02\n"
    predictions = read_predictions(write_text(tmp_path, "v_abc.csv", text))
    assert (predictions.videos, predictions.classes, predictions.score.tolist()) == (
        ("v_abc",),
        ("action",),
        [0.9, 0.5],
    )


def test_fiftyone_labels(tmp_path: Path) -> None:
    entry = {"label": 1, "timestamps": [0, 1.5], "confidence": 0.5, "attributes": {"x": 1}}
    predictions = read_predictions(
        write_text(tmp_path, "l.json", json.dumps({"classes": ["a", "b"], "labels": {"v": [entry], "w": None}}))
    )
    assert (predictions.videos, predictions.classes, predictions.end.tolist()) == (("v", "w"), ("b",), [1.5])
    del entry["confidence"]
    truth = read_truth(write_text(tmp_path, "l.json", json.dumps({"classes": ["a", "b"], "labels": {"v": [entry]}})))
    assert (truth.classes, truth.end.tolist()) == (("b",), [1.5])


def test_detections_with_more_keys_and_rows_elsewhere(tmp_path: Path) -> None:
    row = {"label": "a", "segment": [0, 1], "score": 0.5}
    content: dict[str, Any] = {"results": {"v": [row | {"extra": {"deep": [1]}}]}, "external_data": {"used": False}}
    assert len(read_predictions(write_text(tmp_path, "p.json", json.dumps(content)))) == 1
    content["external_data"] = {"example": row}
    with pytest.raises(DataError, match="1 detection\\(s\\) lie outside 'results'"):
        read_predictions(write_text(tmp_path, "p.json", json.dumps(content)))


def test_annotations_with_scores_are_still_annotations(tmp_path: Path) -> None:
    rows = [{"label": "a", "segment": [0, 1], "score": 0.5}]
    assert len(read_truth(write(tmp_path, {"v": {"annotations": rows}}))) == 1


def make_predictions(
    *rows: tuple[int, float], classes: tuple[str, ...] = ("Diving",), numbered: bool = False
) -> Predictions:
    video, start = zip(*rows, strict=True)
    count = len(rows)
    return Predictions(
        ("v1", "v2"), classes, video, start, np.add(start, 1), [0] * count, np.ones(count), numbered=numbered
    )


def test_writing_is_atomic_and_repeatable(tmp_path: Path) -> None:
    target = tmp_path / "p.json.gz"
    write_predictions(make_predictions((0, 1.0)), target)
    before = target.read_bytes()
    write_predictions(make_predictions((0, 1.0)), target)
    assert target.read_bytes() == before
    with pytest.raises(BadValue, match="is not Unicode text and cannot be written here"):
        write_predictions(make_predictions((0, 1.0), classes=("\udce9",)), tmp_path / "p.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json.gz"]
    with refused("F65", DataError, match="its folder does not exist; create"):
        write_predictions(make_predictions((0, 1.0)), tmp_path / "none" / "p.json")


def test_a_failed_write_leaves_the_target_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "p.csv"
    target.write_text("before")
    with pytest.raises(BadValue):
        write_predictions(make_predictions((0, 1.0), classes=("\udce9",)), target)
    assert target.read_text() == "before"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    truth = Truth(("v1",), ("Diving",), [0], [0.0], [1.0], [0])
    with pytest.raises(DataError, match="is not empty; name a new or an empty folder"):
        write_truth(truth, tmp_path / "full")


def test_the_format_is_chosen_by_the_ending_or_by_name(tmp_path: Path) -> None:
    truth = Truth(("v1",), ("Diving",), [0], [0.0], [1.0], [0])
    with pytest.raises(
        BadValue, match=r"the suffix \.xyz is of no format for ground truth; name one of activitynet, csv,"
    ):
        write_truth(truth, tmp_path / "t.xyz")
    with pytest.raises(UnknownName, match="no format is called 'activitnet': did you mean activitynet"):
        write_truth(truth, tmp_path / "t.json", format="activitnet")
    with pytest.raises(BadValue, match="ground truth cannot be written as 'actionformer'; name one of"):
        write_truth(truth, tmp_path / "t.pkl", format="actionformer")
    write_truth(truth, tmp_path / "t.xyz", format="csv")
    assert (tmp_path / "t.xyz").read_text() == "video_id,t_start,t_end,label\nv1,0.0,1.0,Diving\n"


def test_strict_readers_find_the_keys_they_require(tmp_path: Path) -> None:
    write_predictions(make_predictions((0, 1.0)), tmp_path / "p.json")
    assert set(json.loads((tmp_path / "p.json").read_text())) == {"version", "results", "external_data"}
    write_truth(Truth(("v1",), ("Diving",), [0], [0.0], [1.0], [0]), tmp_path / "t.json")
    assert set(json.loads((tmp_path / "t.json").read_text())) == {"version", "taxonomy", "database"}
    write_predictions(make_predictions((0, 1.0), classes=("3",), numbered=True), tmp_path / "p.pkl")
    columns = pickle.loads((tmp_path / "p.pkl").read_bytes())
    assert list(columns) == ["video-id", "t-start", "t-end", "label", "score"]
    assert (columns["video-id"], columns["label"].tolist()) == (["v1"], [3])


def test_formats_with_numbers_refuse_names_without_them(tmp_path: Path) -> None:
    write_predictions(make_predictions((0, 1.0)), tmp_path / "p.txt")
    assert (tmp_path / "p.txt").read_text() == "v1 1.0 2.0 26 1.0\n"
    for name in ("p.txt", "p.pkl"):
        with pytest.raises(BadValue, match="this format holds class numbers, and 'Run' has none; give ground truth"):
            write_predictions(make_predictions((0, 1.0), classes=("Run",)), tmp_path / name)
    for video in ("a b", "", "{x", "v.mpeg"):
        odd = Predictions((video,), ("26",), [0], [0.0], [1.0], [0], [1.0], numbered=True)
        with pytest.raises(BadValue, match="cannot be the first word of a line; write JSON or CSV instead"):
            write_predictions(odd, tmp_path / "p.txt")


def test_conversion_names_what_is_lost(toy: Path, tmp_path: Path) -> None:
    done = convert(toy, tmp_path / "t.csv")
    assert (done.kind, done.source_format, done.target_format, done.rows) == ("truth", "thumos14", "csv", 3)
    assert done.lost == ("1 video(s) without a row",)
    assert str(done) == "3 rows of ground truth, thumos14 to csv; not kept: 1 video(s) without a row"
    done = convert(toy, tmp_path / "folder")
    assert done.lost == ("the durations of videos", "the rates of videos", "1 video(s) without a row")
    done = convert(toy, tmp_path / "f.json", to="fiftyone", subset="test")
    assert done.lost == (
        "the subsets of videos",
        "the durations of videos",
        "the rates of videos",
        "the numbers of classes",
    )
    assert convert(toy, tmp_path / "again.json").lost == ()
    write_predictions(make_predictions((1, 1.0), (0, 2.0)), tmp_path / "p.csv")
    assert convert(tmp_path / "p.csv", tmp_path / "p.json").lost == ()
    done = convert(tmp_path / "p.json", tmp_path / "p.txt")
    assert done.lost == ("the names of classes",)


def test_conversion_reports_a_changed_order_of_rows(tmp_path: Path) -> None:
    write_predictions(make_predictions((0, 1.0), (1, 1.0), (0, 2.0)), tmp_path / "p.csv")
    assert convert(tmp_path / "p.csv", tmp_path / "p.json").lost == ("the order of rows across videos",)


def test_conversion_names_and_numbers_classes_by_the_truth(toy: Path, tmp_path: Path) -> None:
    numbered = make_predictions((0, 1.0), classes=("4",), numbered=True)
    write_predictions(numbered, tmp_path / "p.pkl")
    done = convert(tmp_path / "p.pkl", tmp_path / "p.json", truth=toy)
    assert (done.rows, done.lost) == (1, ())
    assert read_predictions(tmp_path / "p.json").classes == ("Run",)
    convert(tmp_path / "p.json", tmp_path / "q.pkl", truth=read_truth(toy))
    converted = read_predictions(tmp_path / "q.pkl")
    assert (converted.classes, converted.numbered) == (("4",), True)
    plain = write(tmp_path, {"v": annotated([0, 1])})
    with pytest.raises(
        BadValue, match="the predictions have class numbers and the ground truth gives its classes none"
    ):
        convert(tmp_path / "p.pkl", tmp_path / "x.json", truth=plain)
    with pytest.raises(BadValue, match="holds predictions, which have no subsets; leave the subset out"):
        convert(tmp_path / "p.pkl", tmp_path / "x.json", subset="test")


def test_conversion_of_labels_and_with_fix(tmp_path: Path) -> None:
    labels = write_text(tmp_path, "l.txt", "a.mp4 3\nb.mp4 0\n")
    done = convert(labels, tmp_path / "l.json")
    assert (done.kind, done.rows, done.lost) == (
        "labels",
        2,
        ("the paths of videos", "that labels are true, not scored"),
    )
    with pytest.raises(BadValue, match="a list of videos holds class numbers, and these labels are names"):
        write_video_labels(VideoLabels(("a",), ("Run",), [0], [0]), tmp_path / "m.txt")
    assert convert(tmp_path / "l.json", tmp_path / "m.txt").lost == ("the scores",)
    broken = write(tmp_path, {"v": annotated([0, 1], [3, 2])})
    done = convert(broken, tmp_path / "fixed.json", fix=True)
    assert (done.rows, done.left_out) == (1, {"reversed, dropped": 1})
    assert str(done) == "1 rows of ground truth, activitynet to activitynet; 1 reversed, dropped"


def test_every_format_has_a_description() -> None:
    for name in formats:
        format = formats[name]
        assert format.about
        assert not format.about.endswith(".")
        assert set(format.writes) <= {kind for kind in ("truth", "predictions", "labels") if format.can_write(kind)}


def shared_file(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"no {name} beside the checkout")
    return path


@pytest.mark.parametrize(
    ("name", "subset", "variant"),
    [
        ("data/annotations/thumos14.json", "test", "THUMOS14 test, 212 videos, 3332 instances (without those after"),
        ("data/annotations/thumos14.json", None, "THUMOS14 validation and test, 412 videos, 6335 instances"),
        ("data/annotations/thumos14_test_extra_characteristics.json.gz", None, "THUMOS14 test, 212 videos, 3358"),
        ("data/annotations/thumos14_val_extra_characteristics.json.gz", None, "THUMOS14 validation, 200 videos, 3003"),
        ("data/thumos14-text/test", None, "THUMOS14 test, official: 213 videos, 3358 instances"),
        ("data/annotations/activitynet13_valid_tsp.csv.gz", None, "ActivityNet 1.3 validation, 4926 videos, 7654"),
        ("golden/diagnosis/inputs/gt_anet13_val.json.gz", "validation", "ActivityNet 1.3 validation, 4926 videos"),
    ],
)
def test_variants_of_real_truth_are_identified(name: str, subset: str | None, variant: str) -> None:
    identified = variant_of(read_truth(shared_file(name), subset=subset))
    assert identified is not None
    assert identified.startswith(variant)


@pytest.mark.parametrize(
    ("name", "videos", "instances", "classes"),
    [
        ("data/annotations/activitynet13_bmn.json.gz", 19228, 22152, 200),
        ("data/annotations/multithumos.json.gz", 413, 38690, 65),
        ("golden/diagnosis/inputs/gt_sixchar_testing.json.gz", 1000, 1529, 199),
        ("golden/diagnosis/inputs/gt_sixchar_dirty_testing.json.gz", 1500, 2270, 200),
    ],
)
def test_other_real_truth(name: str, videos: int, instances: int, classes: int) -> None:
    truth = read_truth(shared_file(name))
    assert (len(truth.videos), len(truth), len(truth.classes)) == (videos, instances, classes)


def test_the_real_thumos14_json() -> None:
    truth = read_truth(shared_file("data/annotations/thumos14.json"))
    assert np.unique(truth.fps, return_counts=True)[1].tolist() == [2, 11, 18, 381]
    assert truth.label_ids is not None
    assert [truth.classes[i] for i in np.argsort(truth.label_ids)] == sorted(truth.classes)


def test_two_real_formats_hold_the_same_truth() -> None:
    text = read_truth(shared_file("data/thumos14-text/test"))
    assert len(text.ambiguous) == 99
    bare = Truth(text.videos, text.classes, text.video, text.start, text.end, text.label)
    assert bare.fingerprint == read_truth(shared_file("golden/diagnosis/inputs/gt_thumos14_test.json")).fingerprint


def test_real_predictions() -> None:
    predictions = read_predictions(shared_file("golden/diagnosis/inputs/pred_real_autoloc_thumos14.json.gz"))
    assert (len(predictions), len(predictions.classes)) == (20763, 20)
    assert (predictions.start[0], predictions.score[0]) == (104.03334185409547, 0.5408711433410645)
    predictions = read_predictions(shared_file("golden/diagnosis/inputs/pred_real_upc_lstm09_anet13.json.gz"))
    assert (len(predictions), len(predictions.videos)) == (7786, 4926)


def test_real_lists() -> None:
    labels = read_video_labels(shared_file("data/annotations/mini-ssv2-87_val.json.gz"), subset="validation")
    assert (len(labels.videos), len(labels.classes)) == (13157, 87)
    assert len(read_video_labels(shared_file("data/annotations/mini-kinetics-200_val.json.gz")).videos) == 19849


def test_the_real_activitynet_has_segments_without_length() -> None:
    truth = read_truth(shared_file("golden/diagnosis/inputs/gt_anet13_val.json.gz"))
    assert int((truth.start == truth.end).sum()) == 3
    with pytest.raises(UnknownName, match=r"no video in .*gt_anet13_val\.json\.gz is called"):
        segments_of(shared_file("golden/diagnosis/inputs/gt_anet13_val.json.gz"), "none at all")


def test_thumos_text_names_the_official_numbers_and_leaves_others_alone(tmp_path: Path) -> None:
    path = tmp_path / "found.txt"
    path.write_text("a.mpeg 1 2 7 0.5\na 3 4 97 0.4\na 5 6 55 0.3\n")
    predictions = read_predictions(path)
    assert predictions.classes == ("BaseballPitch", "VolleyballSpiking", "55")
    assert not predictions.numbered
    path.write_text("".join(f"a 1 2 {number} 0.5\n" for number in range(20)))
    assert read_predictions(path).numbered
