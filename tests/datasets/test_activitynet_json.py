"""Ground truth in ActivityNet's shape, and in that of `thumos14.json`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from jostle.datasets.activitynet_json import read_annotations, segments_of
from jostle.errors import DataError, UnknownName

SHARED = Path(__file__).parents[3] / "shared"


def annotated(*segments: Any, **facts: Any) -> dict[str, Any]:
    return {"subset": "validation", "annotations": [{"label": "Run", "segment": s} for s in segments], **facts}


def write(folder: Path, database: Any, **others: Any) -> Path:
    path = folder / "gt.json"
    path.write_text(json.dumps({"database": database, **others}), encoding="utf-8")
    return path


def refusal(path: Path, fault: str) -> str:
    with pytest.raises(DataError) as caught:
        read_annotations(path)
    assert caught.value.fault == fault
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    swim = {"label": "Swim", "segment": [0, 1.5], "segment(frames)": [0, 45], "label_id": 1}
    database = {
        "v_1": annotated([1.0, 2.5], [4, 5], duration=4.5, url="https://example.org", resolution="320x240"),
        "v_2": {"subset": "Test", "duration": 9, "fps": 29.97, "annotations": [swim]},
        "v_3": {"subset": "Test"},
    }
    return write(tmp_path, database, version="1.3", taxonomy=[])


def test_both_shapes_are_read(toy: Path) -> None:
    truth = read_annotations(toy)
    assert list(truth) == ["v_1", "v_2", "v_3"]
    first, second, third = truth.values()
    assert (first.subset, first.duration, first.fps) == ("validation", 4.5, None)
    assert first.segments.start.tolist() == [1, 4]
    assert first.segments.end.tolist() == [2.5, 5]  # beyond the duration, as in THUMOS14
    assert first.segments.score is None
    assert (second.subset, second.duration, second.fps) == ("Test", 9, Fraction(30000, 1001))
    assert [s.segments.classes for s in truth.values()] == [("Run", "Swim")] * 3
    assert second.segments.label.tolist() == [1]
    assert (len(third.segments), third.duration, third.fps) == (0, None, None)


def test_one_video_alone(toy: Path) -> None:
    assert segments_of(toy, "v_1").start.tolist() == [1, 4]
    assert len(segments_of(str(toy), "v_3", subset="test")) == 0


def test_a_fault_elsewhere_does_not_bar_a_sound_video(tmp_path: Path) -> None:
    path = write(tmp_path, {"good": annotated([0, 1]), "bad": annotated([1, 1])})
    assert len(segments_of(path, "good")) == 1
    with pytest.raises(DataError, match="video bad: the segment of annotation 0 has no length"):
        segments_of(path, "bad")


def test_unknown_video_gets_near_names(toy: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        segments_of(toy, "v1")
    assert str(caught.value) == f"no video in {toy} is called 'v1': did you mean v_1?"
    with pytest.raises(UnknownName, match="is called 'other': known: v_1, v_2, v_3"):
        segments_of(toy, "other")


def test_unknown_video_in_a_long_list_names_a_few(tmp_path: Path) -> None:
    path = write(tmp_path, {f"clip{i:03}": annotated() for i in range(100)})
    with pytest.raises(UnknownName, match=r"known: clip000, clip001, clip002, clip003, clip004 and 95 more$"):
        segments_of(path, "zzz")


def test_ids_match_under_nfc_and_twins_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"cafe\u0301": annotated([0, 1])})
    assert list(read_annotations(path)) == ["caf\u00e9"]
    assert len(segments_of(path, "caf\u00e9")) == len(segments_of(path, "cafe\u0301")) == 1
    path = write(tmp_path, {"cafe\u0301": annotated(), "caf\u00e9": annotated()})
    assert refusal(path, "F22") == (
        r"the ids 'cafe\u0301' and 'caf\xe9' are one id in two Unicode forms; keep one of them"
    )


def test_F28_predictions_given_as_truth(tmp_path: Path) -> None:
    path = tmp_path / "pred.json"
    path.write_text('{"version": "1", "results": {"v_1": []}, "external_data": {}}')
    assert refusal(path, "F28") == (
        "not ground truth: it looks like predictions (it has 'results', not 'database'); give the annotations "
        "here, and this file where predictions are asked for"
    )


def test_F28_other_shapes_are_described(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text('{"v_1": {}, "v_2": {}}')
    assert refusal(path, "F28") == ("not ground truth: it has no 'database'; it holds an object with keys 'v_1', 'v_2'")
    assert "its 'database' is a list of 0, not an object of videos" in refusal(write(tmp_path, []), "F28")
    assert "video v_1 is null, not an object with 'annotations'" in refusal(write(tmp_path, {"v_1": None}), "F28")
    whole = {"v_1": {"annotations": {"label": "run"}}}
    assert "not a list of segments; it looks like labels of whole videos" in refusal(write(tmp_path, whole), "F28")


def test_F29_a_subset_that_is_absent_lists_those_present(toy: Path) -> None:
    assert list(read_annotations(toy, subset="TEST")) == ["v_2", "v_3"]
    for read in (lambda: read_annotations(toy, subset="training"), lambda: segments_of(toy, "v_1", subset="training")):
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.fault == "F29"
        assert str(caught.value) == (
            f"{toy}: no video is in subset 'training'; name one of those present: Test (2), validation (1)"
        )
    with pytest.raises(DataError, match="video v_1 is in subset 'validation', not in 'test'; name its subset, or none"):
        segments_of(toy, "v_1", subset="test")


@pytest.mark.parametrize(
    ("segment", "fault"),
    [
        ([2, 1], "ends at 1, before it starts at 2"),
        ([1.5, 1.5], "has no length: it starts and ends at 1.5"),
        ([10**18, 10**18 + 1], "has no length"),
        ([-0.5, 1], "starts at -0.5, before the video"),
        ([1], "has 1 value(s), not a start and an end"),
        ([1, 2, 3], "has 3 value(s), not a start and an end"),
        (["1", 2], "holds the text '1', not a number of seconds"),
        ([0, None], "holds null, not a number of seconds"),
        ([False, True], "holds false, not a number of seconds"),
        (None, "is null, not [start, end] in seconds"),
        ({"start": 1}, "is an object with keys 'start', not [start, end] in seconds"),
    ],
)
def test_F30_bad_segments_are_refused_with_id_and_index(tmp_path: Path, segment: Any, fault: str) -> None:
    message = refusal(write(tmp_path, {"v 1": annotated([0, 1], segment)}), "F30")
    assert message.startswith(f"video 'v 1': the segment of annotation 1 {fault}")
    assert message.endswith("; a segment needs 0 <= start < end; correct or remove it")


def test_F30_numbers_that_are_not_finite(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, {"v_1": annotated([0, float("nan")])}), "F30")
    assert "NaN is not a finite number" in message
    assert "in database.v_1.annotations[0].segment[1]" in message
    path = write(tmp_path, {"v_1": annotated([0, 12345])})
    path.write_text(path.read_text().replace("12345", "1e999"))
    assert "video v_1: the segment of annotation 0 holds inf, which is not finite" in refusal(path, "F30")


@pytest.mark.parametrize(
    ("annotation", "fault"),
    [
        ([0, 1], "annotation 0 is a list of 2, not an object"),
        ({"label": 3, "segment": [0, 1]}, "the label of annotation 0 is 3, not a class name"),
        ({"label": ["Run"], "segment": [0, 1]}, "the label of annotation 0 is a list of 1, not a class name"),
        ({"label": " ", "segment": [0, 1]}, "the label of annotation 0 is the text ' ', not a class name"),
        ({"segment": [0, 1]}, "the label of annotation 0 is null, not a class name"),
        ({"label": "Run"}, "the segment of annotation 0 is null, not [start, end] in seconds"),
    ],
)
def test_F30_annotations_of_the_wrong_kind(tmp_path: Path, annotation: Any, fault: str) -> None:
    assert f"video v_1: {fault}" in refusal(write(tmp_path, {"v_1": {"annotations": [annotation]}}), "F30")


def test_F34_rates_and_durations_are_parsed(tmp_path: Path) -> None:
    rates = {"30000/1001": Fraction(30000, 1001), " 25 ": Fraction(25), 23.976: Fraction(24000, 1001), 0: None}
    for rate, expected in {**rates, "0": None, None: None}.items():
        assert read_annotations(write(tmp_path, {"v": annotated(fps=rate)}))["v"].fps == expected
    assert read_annotations(write(tmp_path, {"v": annotated(duration="12.5")}))["v"].duration == 12.5


@pytest.mark.parametrize("value", ["fast", "1/0", "1e999999999", -1, True, [], "-5", "1/2/3"])
def test_F34_rates_and_durations_that_are_neither(tmp_path: Path, value: Any) -> None:
    message = refusal(write(tmp_path, {"v": annotated(fps=value)}), "F34")
    assert message.startswith("video v: 'fps' is ")
    assert message.endswith(", not a positive number of frames per second; correct or remove it")
    assert "'duration' is " in refusal(write(tmp_path, {"v": annotated(duration=value)}), "F34")


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"no {name} beside the checkout")
    return path


def test_the_real_thumos14_json() -> None:
    truth = read_annotations(shared("data/annotations/thumos14.json"))
    assert len(truth) == 412
    assert len(truth["video_test_0000004"].segments.classes) == 20
    assert sum(video.fps == Fraction(30000, 1001) for video in truth.values()) == 18
    test = [video for video in truth.values() if video.subset == "Test"]
    assert sum(len(video.segments) for video in test) == 3332


@pytest.mark.parametrize(
    ("name", "videos", "instances"),
    [
        ("thumos14_test.json", 212, 3358),
        ("sixchar_testing.json.gz", 1000, 1529),
        ("sixchar_dirty_testing.json.gz", 1500, 2270),
    ],
)
def test_real_truth_with_characteristics(name: str, videos: int, instances: int) -> None:
    truth = read_annotations(shared(f"golden/diagnosis/inputs/gt_{name}"), subset="testing")
    assert len(truth) == videos
    assert sum(len(video.segments) for video in truth.values()) == instances


def test_the_real_activitynet_has_segments_without_length() -> None:
    path = shared("golden/diagnosis/inputs/gt_anet13_val.json.gz")
    assert "has no length: it starts and ends at" in refusal(path, "F30")
    with pytest.raises(UnknownName, match=r"no video in .*gt_anet13_val\.json\.gz is called"):
        segments_of(path, "none at all")
