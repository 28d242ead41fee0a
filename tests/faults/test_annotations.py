"""Faults 27 to 38: annotations that are broken, of another kind, contradictory, odd, or far too large."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.refusals import refused
from jostle.errors import DataError
from jostle.io.files import prediction_table, text
from jostle.io.files.annotations import read_predictions, read_truth, read_video_labels


def annotated(*segments: Any, **facts: Any) -> dict[str, Any]:
    return {"subset": "validation", "annotations": [{"label": "Run", "segment": s} for s in segments], **facts}


def write(folder: Path, database: Any, **others: Any) -> Path:
    path = folder / "gt.json"
    path.write_text(json.dumps({"database": database, **others}), encoding="utf-8")
    return path


def refusal(path: Path, fault: str, read: Callable[[Path], object] = read_truth) -> str:
    with refused(fault, DataError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.fault("F27")
@pytest.mark.parametrize("read", [read_truth, read_predictions, read_video_labels])
def test_F27_truncated_json_is_refused_with_the_place(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"database": {\n "v_1": {"annotations": [{"label": "Run", "segment": [1.0, ')
    assert refusal(path, "F27", read) == (
        "broken JSON at line 2, column 60, nearest key 'segment', in database.v_1.annotations[0].segment[1]: "
        "Expecting value; the file looks cut off, fetch it again"
    )
    path.write_text('{"results": {}} {}')
    assert "nearest key 'results': Extra data; correct it there" in refusal(path, "F27", read)
    path.write_bytes(gzip.compress(b'{"database": {"v": {}}}' * 2000)[:-12])
    assert "broken gzip data" in refusal(path, "F27", read)
    path.write_bytes(b"")
    assert refusal(path, "F27", read) == "the file is empty; fetch it again"


@pytest.mark.fault("F28")
def test_F28_predictions_given_as_truth_and_the_reverse(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"version": "1", "results": {"v_1": []}, "external_data": {}}')
    assert refusal(path, "F28") == (
        "not ground truth: it looks like predictions (it has 'results', not 'database'); give the annotations "
        "here, and this file where predictions are asked for"
    )
    assert refusal(write(tmp_path, {"v_1": annotated([0, 1])}), "F28", read_predictions) == (
        "not predictions: it looks like ground truth (it has 'database'); give the predictions here, and this file "
        "where ground truth is asked for"
    )
    path = tmp_path / "a.csv"
    path.write_text("video,start,end,label\nv,0,1,Run\n")
    assert "it looks like ground truth (it has no column of scores)" in refusal(path, "F28", read_predictions)
    path.write_text("video,start,end,label,conf\nv,0,1,Run,0.5\n")
    assert "it looks like predictions (it has a column of scores)" in refusal(path, "F28")


@pytest.mark.fault("F28")
def test_F28_labels_of_whole_videos_given_as_segments(tmp_path: Path) -> None:
    path = write(tmp_path, {"v_1": {"annotations": {"label": "run", "segment": [1, 289]}}})
    assert "it looks like labels of whole videos (its 'annotations' are objects, not" in refusal(path, "F28")
    path.write_text('{"results": {"v_1": [{"label": "Run", "score": 1}]}}')
    message = refusal(path, "F28", read_predictions)
    assert "looks like labels of whole videos (the entries of its 'results' have no 'segment')" in message


@pytest.mark.fault("F28")
def test_F28_other_shapes_are_described(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text('{"v_1": {}, "v_2": {}}')
    assert refusal(path, "F28") == "not ground truth: it has no 'database'; it holds an object with keys 'v_1', 'v_2'"
    path.write_text("[1, 2]")
    assert refusal(path, "F28") == "holds a list of 2 at the top; an object {...} is needed"
    assert "its 'database' is a list of 0, not an object of videos" in refusal(write(tmp_path, []), "F28")
    assert "video v_1 is null, not an object with 'annotations'" in refusal(write(tmp_path, {"v_1": None}), "F28")
    path = write(tmp_path, {"v_1": {"annotations": 3}})
    assert refusal(path, "F28") == "video v_1: 'annotations' is 3, not a list of segments; correct it"
    path.write_text("hello world\n")
    assert refusal(path, "F28") == (
        "not ground truth: its first line is 'hello world'; a table needs a header such as "
        "video_id,t_start,t_end,label,score, a list needs 'path label' in each line"
    )
    assert "it is a folder without files such as 'Diving_test.txt'" in refusal(tmp_path, "F28")


@pytest.mark.fault("F29")
def test_F29_a_subset_that_is_absent_or_empty_lists_those_present(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": annotated([0, 1]), "b": annotated(subset="Test"), "c": annotated(subset="Test")})
    assert refusal(path, "F29", lambda p: read_truth(p, subset="training")) == (
        "no video is in subset 'training'; name one of those present: Test (2), validation (1)"
    )
    assert refusal(path, "F29", lambda p: read_truth(p, subset="test")) == (
        "none of the 2 video(s) in subset 'test' has an instance; subsets with instances: validation (1)"
    )
    assert len(read_truth(path, subset="VALIDATION")) == 1
    path = write(tmp_path, {"a": annotated(), "b": annotated()})
    assert refusal(path, "F29") == ("none of the 2 video(s) in the file has an instance; subsets with instances: none")
    path = write(tmp_path, {"a": annotated([2, 1])})
    assert "has an instance (dropped: {'reversed, dropped': 1})" in refusal(
        path, "F29", lambda p: read_truth(p, fix=True)
    )


@pytest.mark.fault("F30")
@pytest.mark.parametrize(
    ("segment", "fault", "counted"),
    [
        ([2, 1], "ends at 1, before it starts at 2", "reversed, dropped"),
        ([-0.5, 1], "starts at -0.5, before the video", "start before the video, clipped"),
        ([-2, -1], "starts at -2, before the video", "before the video, dropped"),
        ([1], "has 1 value(s), not a start and an end", "not a segment, dropped"),
        ([1, 2, 3], "has 3 value(s), not a start and an end", "not a segment, dropped"),
        (["1", 2], "holds the text '1', not a number of seconds", "not a segment, dropped"),
        ([0, None], "holds null, not a number of seconds", "not a segment, dropped"),
        ([False, True], "holds false, not a number of seconds", "not a segment, dropped"),
        (None, "is null, not [start, end] in seconds", "not a segment, dropped"),
        ({"start": 1}, "is an object with keys 'start', not [start, end] in seconds", "not a segment, dropped"),
        ([0, math.nan], "holds NaN, which is not finite", "not finite, dropped"),
        ([0, math.inf], "holds Infinity, which is not finite", "not finite, dropped"),
    ],
)
def test_F30_bad_segments_are_refused_with_id_and_index(tmp_path: Path, segment: Any, fault: str, counted: str) -> None:
    path = write(tmp_path, {"v 1": annotated([0, 1], segment, [3, 4])})
    message = refusal(path, "F30")
    assert message == (
        f"video 'v 1': the segment of annotation 1 {fault}; a segment needs 0 <= start <= end; correct or remove it, "
        "or use fix"
    )
    truth = read_truth(path, fix=True)
    assert truth.left_out == {counted: 1}
    expected = [0, 0, 3] if "clipped" in counted else [0, 3]
    assert truth.start.tolist() == expected


@pytest.mark.fault("F30")
def test_F30_segments_without_length_are_kept_for_the_protocol(tmp_path: Path) -> None:
    truth = read_truth(write(tmp_path, {"v": annotated([1.5, 1.5], [10**18, 10**18 + 1])}))
    assert truth.start.tolist() == truth.end.tolist() == [1.5, 1e18]


@pytest.mark.fault("F30")
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
    sound = {"label": "Run", "segment": [0, 1]}
    path = write(tmp_path, {"v_1": {"annotations": [annotation, sound]}})
    assert f"video v_1: {fault}" in refusal(path, "F30")
    truth = read_truth(path, fix=True)
    assert (len(truth), sum(truth.left_out.values())) == (1, 1)


@pytest.mark.fault("F30")
def test_F30_characteristics_that_are_no_numbers(tmp_path: Path) -> None:
    annotation = {"label": "Run", "segment": [0, 1], "coverage": "high"}
    assert refusal(write(tmp_path, {"v": {"annotations": [annotation]}}), "F30") == (
        "video v: 'coverage' of annotation 0 is the text 'high', not a number; correct or remove it"
    )
    annotation = {"label": "Run", "segment": [0, 1], "all-segments": [[0, 1], [2, 1]]}
    assert "a segment in 'all-segments' of annotation 0 ends at 1" in refusal(
        write(tmp_path, {"v": {"annotations": [annotation]}}), "F30"
    )


@pytest.mark.fault("F30")
def test_F30_the_line_is_named_in_text(tmp_path: Path) -> None:
    path = tmp_path / "gt.csv"
    path.write_text("video,start,end,label\nv,0,1,Run\nv,two,3,Run\n")
    assert "video v: the segment of line 3 holds the text 'two', not a number" in refusal(path, "F30")
    (tmp_path / "Run_test.txt").write_text("v 0 1\nv 5 4\n")
    assert "the segment of line 2 of Run_test.txt ends at 4.0, before it starts at 5.0" in refusal(tmp_path, "F30")


@pytest.mark.fault("F31", "F32")
def test_F31_F32_segments_beyond_the_end_and_duplicates_are_kept(tmp_path: Path) -> None:
    truth = read_truth(write(tmp_path, {"v": annotated([0, 1], [0, 1], [8, 12], duration=9)}))
    assert (truth.start.tolist(), truth.end.tolist()) == ([0, 0, 8], [1, 1, 12])
    assert truth.duration.tolist() == [9]
    assert truth.left_out == {}


@pytest.mark.fault("F33")
def test_F33_one_video_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text('{"database": {\n"v": {"annotations": []},\n"v": {"annotations": []}}}')
    assert refusal(path, "F33") == ("the key 'v' appears twice in database, in line 2 and line 3; keep one of them")
    path = tmp_path / "pred.json"
    path.write_text('{"results": {"v": [{"label": "a", "segment": [0, 1],\n "score": 1, "score": 2}]}}')
    assert "the key 'score' appears twice in results.v[0]" in refusal(path, "F33", read_predictions)
    path = tmp_path / "gt.csv"
    path.write_text("video,start,start,end,label\nv,0,0,1,Run\n")
    assert refusal(path, "F33") == "line 1: the column 'start' appears twice; remove one"


@pytest.mark.fault("F34")
def test_F34_rates_and_durations_are_parsed(tmp_path: Path) -> None:
    rates = {"30000/1001": 30000 / 1001, " 25 ": 25, 23.976: 23.976, None: math.nan}
    for rate in (0, "0"):
        assert math.isnan(read_truth(write(tmp_path, {"v": annotated([0, 1], fps=rate)})).fps[0])
    for rate, expected in rates.items():
        truth = read_truth(write(tmp_path, {"v": annotated([0, 1], fps=rate, duration=rate)}))
        np.testing.assert_equal((truth.fps[0], truth.duration[0]), (expected, expected))
    assert read_truth(write(tmp_path, {"v": annotated([0, 1], duration="12.5")})).duration[0] == 12.5


@pytest.mark.fault("F128")
@pytest.mark.parametrize("value", [0, "0", 0.0])
def test_F128_a_duration_of_nothing_is_refused_or_counted(tmp_path: Path, value: Any) -> None:
    path = write(tmp_path, {"v": annotated([0, 1], duration=value)})
    assert "'duration' is" in refusal(path, "F128")
    fixed = read_truth(path, fix=True)
    assert math.isnan(fixed.duration[0])
    assert fixed.left_out == {"a duration of 0, taken as unknown": 1}


@pytest.mark.fault("F34")
@pytest.mark.parametrize("value", ["fast", "1/0", "1e999999999", -1, True, [], "-5", "1/2/3", math.nan])
def test_F34_rates_and_durations_that_are_neither(tmp_path: Path, value: Any) -> None:
    message = refusal(write(tmp_path, {"v": annotated([0, 1], fps=value)}), "F34")
    assert message.startswith("video v: 'fps' is ")
    assert message.endswith(", not a positive number of frames per second; correct or remove it")
    assert "'duration' is " in refusal(write(tmp_path, {"v": annotated([0, 1], duration=value)}), "F34")


@pytest.mark.fault("F34")
def test_F34_frames_without_a_rate_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"labels": {"v": [{"label": "Run", "support": [1, 30]}]}}))
    assert refusal(path, "F34") == (
        "video v: detection 0 has 'support' [1, 30], in frames, and the file gives no rate to turn them into "
        "seconds; export the labels with use_timestamps=True"
    )


@pytest.mark.fault("F36")
@pytest.mark.parametrize(
    ("pairs", "fault"),
    [
        ([("Run", 1), ("Run", 2)], "annotation 1 gives class 'Run' the 'label_id' 2, which contradicts 'Run' with 1"),
        ([("Run", 1), ("Jump", 1)], "annotation 1 gives class 'Jump' the 'label_id' 1, which contradicts 'Run' before"),
        ([("Run", "1")], "annotation 0 has the text '1' as 'label_id', not a number from 0"),
        ([("Run", -1)], "annotation 0 has -1 as 'label_id', not a number from 0"),
    ],
)
def test_F36_numbers_of_classes_that_contradict(tmp_path: Path, pairs: list[tuple[str, Any]], fault: str) -> None:
    rows = [{"label": name, "segment": [0, 1], "label_id": number} for name, number in pairs]
    assert fault in refusal(write(tmp_path, {"v": {"annotations": rows}}), "F36")


@pytest.mark.fault("F36")
def test_F36_a_class_without_a_number_among_others(tmp_path: Path) -> None:
    rows = [{"label": "Run", "segment": [0, 1], "label_id": 0}, {"label": "Jump", "segment": [0, 1]}]
    assert refusal(write(tmp_path, {"v": {"annotations": rows}}), "F36") == (
        "class 'Jump' has no 'label_id' while others have; give it one, or none to all"
    )
    (tmp_path / "Run_test.txt").write_text("v 0 1\n")
    (tmp_path / "detclasslist.txt").write_text("7 Run\nseven Jump\n")
    with refused("F36", DataError, match="line 2 is 'seven Jump', not a number and a class of its own"):
        read_truth(tmp_path)


@pytest.mark.fault("F37")
def test_F37_videos_without_annotations_are_kept(tmp_path: Path) -> None:
    truth = read_truth(write(tmp_path, {"a": annotated(), "b": annotated([0, 1]), "c": {"subset": "validation"}}))
    assert truth.videos == ("a", "b", "c")
    assert truth.video.tolist() == [1]


@pytest.mark.fault("F38")
def test_F38_a_packed_file_may_not_unpack_without_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gt.json.gz"
    path.write_bytes(gzip.compress(b'{"database": {}}' + b" " * 1_000_000))
    assert path.stat().st_size < 5000
    assert "in the file" in refusal(path, "F29"), "short files may"
    monkeypatch.setattr(text, "_MIN_UNPACKED_LIMIT", 1000)
    assert "larger than the limit of" in refusal(path, "F38")


@pytest.mark.fault("F38")
def test_F38_huge_deep_and_long_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"database": ' + "[" * 100_000)
    for read in (read_truth, read_predictions):
        assert "nested too deeply to be annotations or predictions" in refusal(path, "F38", read)
    path.write_text('{"results": {"v": [{"label": "a", "segment": [0, ' + "9" * 5000 + '], "score": 1}]}}')
    assert "a number of more than 300 digits at line 1" in refusal(path, "F38", read_predictions)
    path.write_text('{"database": {"v": {"annotations": [' + '{"label": "a"},' * 9 + "{}]}}}")
    monkeypatch.setattr(prediction_table, "MAX_OTHERS", 9)
    assert refusal(path, "F38") == "holds more than 9 objects besides detections; split the file"
    path.write_text('{"results": {}, "taxonomy": [' + "[]," * 1000 + "[]]}")
    monkeypatch.setattr(text, "MAX_VALUES", 1000)
    assert refusal(path, "F38", read_predictions) == "holds more than 1000 values; split the file"
