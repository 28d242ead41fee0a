"""Faults 39 to 51: predictions that are cut off, not finite, mislabelled or hostile, and features that do not fit."""

from __future__ import annotations

import collections
import gzip
import json
import math
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.hostile import MaliciousObject
from helpers.refusals import refused
from jostle.errors import BadValue, DataError
from jostle.io.files.annotations import read_predictions, read_video_labels
from jostle.io.files.arrays import check_length, read_features
from jostle.io.files.pickles import read_pickle

HEADER = "video_id,t_start,t_end,label,score\n"


def detection(start: Any = 0, end: Any = 1, score: Any = 0.5, label: Any = "Run") -> dict[str, Any]:
    return {"label": label, "segment": [start, end], "score": score}


def write(folder: Path, **results: list[Any]) -> Path:
    path = folder / "pred.json"
    path.write_text(json.dumps({"results": results}))
    return path


def write_file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path, fault: str, read: Callable[[Path], object] = read_predictions) -> str:
    with refused(fault, DataError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def columns(n: int = 3, **others: Any) -> dict[str, Any]:
    values = np.arange(n, dtype=np.float32)
    return {
        "video-id": ["v"] * n,
        "t-start": values,
        "t-end": values + 1,
        "label": np.arange(n),
        "score": values,
    } | others


@pytest.mark.fault("F39")
@pytest.mark.parametrize("cut", [1, 3, 5, 9, 14])
def test_F39_a_cut_table_is_refused_with_its_last_line(tmp_path: Path, cut: int) -> None:
    text = HEADER + "v,0.25,1.5,Run,0.125\nv,2.25,3.5,Run,0.875\n"
    path = write_file(tmp_path, "a.csv", text[:-cut])
    assert refusal(path, "F39") == (
        f"the last line, 3, has no line end and may be cut off: {text[:-cut].splitlines()[-1]!r}; write the file "
        "again, or end the line if it is whole"
    )
    assert "has no line end" in refusal(write_file(tmp_path, "a.txt", "v 0 1 7 0.5\nv 0 1 7 0."), "F39")


@pytest.mark.fault("F39")
def test_F39_with_fix_the_cut_line_is_dropped_and_counted(tmp_path: Path) -> None:
    for name, text in (("a.csv", HEADER + "v,0,1,Run,0.5\nv,0,1,Run,0."), ("a.txt", "v 0 1 7 0.5\nv 0 1 7 0.")):
        predictions = read_predictions(write_file(tmp_path, name, text), fix=True)
        assert (len(predictions), predictions.left_out) == (1, {"last line without an end, dropped": 1})


@pytest.mark.fault("F39")
def test_F39_lines_with_too_few_fields(tmp_path: Path) -> None:
    assert refusal(write_file(tmp_path, "a.csv", HEADER + "v,0,1,Run\nv,0,1,Run,0.5\n"), "F39") == (
        'line 2 has 4 field(s), the header 5; quote fields that hold a comma ("a, b"), or write the file again'
    )
    assert refusal(write_file(tmp_path, "a.txt", "v 0 1 7 0.5\nv 0 1 7\n"), "F39") == (
        "line 2 has 4 field(s), not the five of 'video start end class score'"
    )
    assert "unexpected end of data; the file looks cut off" in refusal(
        write_file(tmp_path, "a.csv", HEADER + 'v,0,1,"Run,0.5\n'), "F39"
    )
    assert "not a path and a class number" in refusal(
        write_file(tmp_path, "l.txt", "a.mp4 1\nb.mp4\n"), "F39", read_video_labels
    )


@pytest.mark.fault("F39")
def test_F39_every_cut_of_a_pickle_or_a_gzip_is_refused(tmp_path: Path) -> None:
    content = pickle.dumps(columns())
    for size in range(1, len(content)):
        assert refusal(write_file(tmp_path, "a.pkl", content[:size]), "F39").startswith(
            ("the pickle is cut off", "broken pickle")
        )
    packed = gzip.compress((HEADER + "v,0,1,Run,0.5\n" * 50).encode())
    assert "broken gzip data" in refusal(write_file(tmp_path, "a.csv.gz", packed[:-9]), "F27")


@pytest.mark.fault("F40")
@pytest.mark.parametrize("kind", ["json", "csv", "txt", "pkl", "fiftyone"])
def test_F40_numbers_that_are_not_finite_are_counted_with_examples(tmp_path: Path, kind: str) -> None:
    rows = [
        (0.0, 1.0, 0.5),
        (0.0, 1.0, math.nan),
        (math.inf, 1.0, 0.5),
        (0.0, -math.inf, math.nan),
        (math.nan, 1.0, 1.0),
    ]
    if kind == "json":
        path = write(tmp_path, w=[], v=[detection(*row) for row in rows])
        first = "video v, detection 1, has score nan; video v, detection 2, has start inf; "
    elif kind == "csv":
        path = write_file(tmp_path, "a.csv", HEADER + "".join(f"v,{s},{e},Run,{p}\n" for s, e, p in rows))
        first = "line 3 has score nan; line 4 has start inf; "
    elif kind == "txt":
        path = write_file(tmp_path, "a.txt", "".join(f"v {s} {e} 7 {p}\n" for s, e, p in rows))
        first = "line 2 has score nan; line 3 has start inf; "
    elif kind == "pkl":
        start, end, score = np.array(rows).T
        content = {"video-id": ["v"] * 5, "t-start": start, "t-end": end, "label": np.zeros(5, int), "score": score}
        path = write_file(tmp_path, "a.pkl", pickle.dumps(content))
        first = "row 1 (v) has score nan; row 2 (v) has start inf; "
    else:
        labels = [{"label": "Run", "timestamps": [s, e], "confidence": p} for s, e, p in rows]
        path = write_file(tmp_path, "a.json", json.dumps({"labels": {"v": labels}}))
        first = "video v, detection 1, has score nan; video v, detection 2, has start inf; "
    message = refusal(path, "F40")
    assert message.startswith(f"4 of 5 detections hold a number that is not finite: {first}")
    assert "has end -inf, score nan and 1 more; correct them, or drop them with fix" in message
    predictions = read_predictions(path, fix=True)
    assert (len(predictions), predictions.left_out) == (1, {"not finite, dropped": 4})


@pytest.mark.fault("F41", "F42")
@pytest.mark.parametrize(
    ("entry", "fault", "message"),
    [
        (detection(score="0.9"), "F41", "has the text '0.9' as its score, not a number; write it without quotes"),
        (detection(score=True), "F41", "has true as its score, not a number"),
        (detection(score=None), "F41", "has null as its score, not a number"),
        ({"label": "Run", "segment": [0, 1]}, "F28", "has no 'score'; it needs 'label', 'segment' and 'score'"),
        (detection(start="1"), "F42", "has the text '1' in its segment, not a number of seconds"),
        (detection() | {"segment": [1]}, "F42", "has a list of 1 as its segment, not [start, end] in seconds"),
        (detection() | {"segment": None}, "F42", "has null as its segment, not [start, end] in seconds"),
        (detection(label=""), "F45", "has the text '' as its label, not a class"),
        (detection(label=None), "F45", "has null as its label, not a class"),
        (detection(label=1.5), "F45", "has 1.5 as its label, not a class"),
        ([0, 1, 0.5], "F28", "is a list of 3, not an object with 'label', 'segment' and 'score'"),
    ],
)
def test_F41_F42_entries_that_are_no_detections(tmp_path: Path, entry: Any, fault: str, message: str) -> None:
    path = write(tmp_path, **{"v 1": [detection(), entry, detection(5, 6)]})
    assert refusal(path, fault) == f"video 'v 1': detection 1 {message}"
    predictions = read_predictions(path, fix=True)
    assert (predictions.start.tolist(), predictions.left_out) == ([0, 5], {"no detection, dropped": 1})


@pytest.mark.fault("F41")
def test_F41_any_finite_score_is_allowed(tmp_path: Path) -> None:
    scores = [0, 1, -3, 250.5, 1e-300, 1e300]
    assert read_predictions(write(tmp_path, v=[detection(score=s) for s in scores])).score.tolist() == scores
    text = HEADER + "".join(f"v,0,1,Run,{score}\n" for score in scores)
    assert read_predictions(write_file(tmp_path, "a.csv", text)).score.tolist() == scores


@pytest.mark.fault("F41")
@pytest.mark.parametrize("field", ["high", "0_9", "0,9", "", "٣", "0x10", "1.2.3"])
def test_F41_fields_that_are_no_numbers_are_refused_with_their_line(tmp_path: Path, field: str) -> None:
    message = refusal(write_file(tmp_path, "a.csv", HEADER + f'v,0,1,Run,"{field}"\n'), "F41")
    assert message.startswith(f"line 2: the score is {field!r}, not a number")
    assert message.endswith("; write a decimal point, not a comma" if field == "0,9" else "; correct it")


@pytest.mark.fault("F42", "F43")
def test_F42_F43_odd_segments_and_duplicates_are_kept(tmp_path: Path) -> None:
    rows = [detection(-1, 1), detection(5, 2), detection(3, 3), detection(0, 10**9), detection(3, 3)]
    predictions = read_predictions(write(tmp_path, v=rows))
    assert predictions.start.tolist() == [-1, 5, 3, 0, 3]
    assert predictions.end.tolist() == [1, 2, 3, 1e9, 3]
    assert predictions.left_out == {}


@pytest.mark.fault("F45")
def test_F45_class_numbers_are_marked_as_such(tmp_path: Path) -> None:
    sources = [
        write(tmp_path, v=[detection(label=7), detection(label=2)]),
        write_file(tmp_path, "a.csv", HEADER + "v,0,1,7,0.5\nv,0,1,2,0.5\n"),
        write_file(tmp_path, "a.txt", "v.mpeg 0 1 7 0.5\nv 0 1 2 0.5\n"),
        write_file(tmp_path, "a.pkl", pickle.dumps(columns(2, label=np.array([7, 2])))),
    ]
    for path in sources:
        predictions = read_predictions(path)
        assert (predictions.numbered, predictions.classes, predictions.label.tolist()) == (True, ("7", "2"), [0, 1]), (
            path
        )
        assert predictions.videos == ("v",)
    named = read_predictions(write_file(tmp_path, "b.csv", HEADER + "v,0,1,7,0.5\nv,0,1,Run,0.5\n"))
    assert (named.numbered, named.classes) == (False, ("7", "Run"))


@pytest.mark.fault("F45")
def test_F45_mixed_and_missing_labels_are_refused(tmp_path: Path) -> None:
    assert refusal(write(tmp_path, v=[detection(label=7), detection()]), "F45") == (
        "some labels are numbers (7) and some are names ('Run'); use one kind"
    )
    assert refusal(write(tmp_path, v=[detection(label=-1)]), "F45") == "-1 is not a label; name the class"
    assert refusal(write_file(tmp_path, "a.csv", HEADER + "v,0,1,,0.5\n"), "F45") == "line 2 names no label; fill it in"
    assert "the class is 'Run', not a number of detclasslist.txt" in refusal(
        write_file(tmp_path, "a.txt", "v 0 1 7 0.5\nv 0 1 Run 0.5\n"), "F45"
    )
    message = refusal(write_file(tmp_path, "a.pkl", pickle.dumps(columns(label=np.array([0.5, 1, 2])))), "F45")
    assert message == "'label' holds numbers that are not whole; write class numbers"


@pytest.mark.fault("F46")
def test_F46_empty_predictions_are_predictions(tmp_path: Path) -> None:
    assert len(read_predictions(write(tmp_path))) == 0
    predictions = read_predictions(write(tmp_path, a=[], b=[]))
    assert (len(predictions), predictions.videos) == (0, ("a", "b"))
    assert len(read_predictions(write_file(tmp_path, "a.csv", HEADER))) == 0
    empty = {name: [] if name == "video-id" else np.zeros(0) for name in columns()}
    assert len(read_predictions(write_file(tmp_path, "a.pkl", pickle.dumps(empty)))) == 0
    assert len(read_predictions(write_file(tmp_path, "a.json", '{"labels": {"v": []}}'))) == 0


@pytest.mark.fault("F49")
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda mark: MaliciousObject(os.system, f"touch {mark}"), "it imports posix.system"),
        (lambda mark: MaliciousObject(eval, f"open({str(mark)!r}, 'w')"), "eval"),
        (lambda mark: MaliciousObject(exec, f"open({str(mark)!r}, 'w')"), "exec"),
        (lambda mark: columns(score=[MaliciousObject(os.mkdir, str(mark))]), "it imports posix.mkdir"),
        (lambda mark: np.array([MaliciousObject(os.mkdir, str(mark))], object), "it holds an array of type 'O8'"),
        (lambda mark: np.array(["a"]), "it holds an array of type 'U1'"),
        (lambda mark: np.zeros(2, [("a", "f8")]), "it holds an array of type 'V8'"),
        (lambda mark: collections.Counter("a"), "it imports collections.Counter"),
        (lambda mark: MaliciousObject(np.load, "x"), "it imports numpy"),
        (lambda mark: 1 << 5000, "it holds a whole number of"),
    ],
)
def test_F49_hostile_pickles_are_refused_without_running(
    tmp_path: Path, make: Callable[[Path], Any], reason: str, protocol: int
) -> None:
    mark = tmp_path / "ran"
    message = refusal(write_file(tmp_path, "a.pkl", pickle.dumps(make(mark), protocol)), "F49")
    assert message.startswith("refused, nothing in it was run: ")
    assert reason in message
    assert message.endswith("save the results as JSON or CSV instead")
    assert not mark.exists()


@pytest.mark.fault("F49")
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (b"\x80\x04cnumpy\ndtype\n(U\x02O8K\x00K\x01tR.", "an array of type 'O8'"),
        (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\nK\x00\x85C\x01btR.", "an unknown kind"),
        (b"\x80\x02cnumpy\nndarray\n(K\x01tR.", "it calls numpy.ndarray"),
        (b"\x80\x02c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00zlibtR.", "it calls _codecs.encode"),
        (b"\x80\x02cnumpy.core.multiarray\nscalar\n.", "as a value"),
        (b"\x80\x02]]]s.", "it sets items of a list"),
        (b"\x80\x02(K\x01K\x02lb.", ""),
        (b"\x80\x02ibuiltins\neval\n.", "instruction 0x69 at byte 2 is not one that builds data"),
        (b"\x80\x02Pid\n.", "instruction 0x50 at byte 2 is not one"),
        (b"\x80\x02\x81.", "instruction 0x81 at byte 2 is not one"),
        (b"\x80\x09N.", "it is of protocol 9"),
        (b"\x80\x02}(" + b"\x85" * 5 + b"u.", ""),
    ],
)
def test_F49_pickle_programs_that_are_no_data_are_refused(tmp_path: Path, program: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_predictions(write_file(tmp_path, "a.pkl", program))
    assert caught.value.fault in ("F49", "F39")
    assert message in str(caught.value)


@pytest.mark.fault("F49")
@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x02)" + b"\x85" * 300_000 + b".",  # a very deep tuple
        b"\x80\x02}" + b")" + b"\x85" * 300_000 + b"K\x01s.",  # as a key, whose hash would overflow the stack
        b"\x80\x02]r\xff\xff\xff\xff.",  # a memo of four billion entries
        b"\x80\x02B\xff\xff\xff\xff.",  # announces four gigabytes, contains none
        b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f.",  # announces eight exabytes
        b"\x80\x02]q\x00"
        + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(60))
        + b".",
        b"\x80\x02]q\x00h\x00a.",  # a list that holds itself
        b"\x80\x02\x8b\xff\xff\xff\x7f.",  # a whole number of two gigabytes
    ],
)
def test_F49_bombs_neither_hang_nor_fill_memory(tmp_path: Path, bomb: bytes) -> None:
    before = time.monotonic()
    with pytest.raises(DataError):
        read_predictions(write_file(tmp_path, "a.pkl", bomb))
    assert time.monotonic() - before < 10


@pytest.mark.fault("F49")
def test_F49_plain_pickles_of_every_protocol_are_read() -> None:
    content = columns(
        score=np.arange(6, dtype=">f8").reshape(2, 3).T,
        more=(1, -5, 2**40, True, None, 1.5, b"ab", "é\n"),
        kinds={1, "a"},
    )
    for protocol in range(6):
        columns_read = read_pickle(pickle.dumps(content, protocol), "a.pkl")
        assert list(columns_read) == list(content)
        for name, expected in content.items():
            np.testing.assert_array_equal(columns_read[name], expected)
        assert columns_read["score"].dtype == np.float64
    assert read_pickle(pickle.dumps([np.float32(1.5), np.int64(3)]), "a") == [1.5, 3]


@pytest.mark.fault("F28")
@pytest.mark.parametrize(
    ("content", "fault", "message"),
    [
        ([1], "F28", "the pickle holds a list of 1, not a dict of the columns video-id, t-start, t-end, label, score"),
        (columns() | {"video-id": ["v", 3, "v"]}, "F28", "'video-id' holds 3, not an id"),
        (columns(score=np.zeros((3, 2))), "F28", "'score' is an array of float64 of shape (3, 2), not one column"),
        (columns(score="abc"), "F28", "'score' is the text 'abc', not one column of numbers"),
        (columns(score=np.zeros(2)), "F39", "the columns have different lengths"),
    ],
)
def test_F28_pickles_of_other_contents_are_described(tmp_path: Path, content: Any, fault: str, message: str) -> None:
    assert message in refusal(write_file(tmp_path, "a.pkl", pickle.dumps(content)), fault)


def save_array(folder: Path, values: Any) -> Path:
    path = folder / "v.npy"
    np.save(path, values)
    return path


@pytest.mark.fault("F50")
def test_F50_features_are_read_as_they_are(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float64).reshape(3, 4)
    for stored in (values, values.astype(np.float16), np.asfortranarray(values)):
        features = read_features(save_array(tmp_path, stored), channels=4)
        assert features.dtype == np.float32
        np.testing.assert_array_equal(features, values)
    np.testing.assert_array_equal(read_features(save_array(tmp_path, values.T), channels=4), values)
    assert read_features(save_array(tmp_path, values.T)).shape == (4, 3)


@pytest.mark.fault("F50")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[None]], object), "found objects, which only running a pickle could read"),
        (np.zeros((2, 3), ">f4"), "expected floats in this machine's byte order, found '>f4' elements"),
        (np.zeros((2, 3), np.int32), "found '<i4' elements"),
        (np.zeros(3, np.float32), "expected an array of shape (T, C), found (3,)"),
        (np.zeros((0, 3), np.float32), "found (0, 3)"),
        (np.array([[0, 1], [np.nan, np.inf]]), "found 2 that are not, the first in row 1, column 0"),
        (np.array([[1e300]]), "found 1 that are not"),
    ],
)
def test_F50_features_that_cannot_be_used(tmp_path: Path, values: Any, message: str) -> None:
    assert message in refusal(save_array(tmp_path, values), "F50", read_features)


@pytest.mark.fault("F50")
def test_F50_truncated_feature_files_are_refused(tmp_path: Path) -> None:
    content = save_array(tmp_path, np.zeros((4, 8), np.float32)).read_bytes()
    assert "expected 128 bytes for (4, 8) of float32, found 127; fetch the file again" in refusal(
        write_file(tmp_path, "v.npy", content[:-1]), "F50", read_features
    )
    assert "broken header" in refusal(write_file(tmp_path, "v.npy", content[:40]), "F50", read_features)
    huge = content[:8] + b"\xff\xff" + content[10:]  # a header longer than the file
    assert "broken header" in refusal(write_file(tmp_path, "v.npy", huge), "F50", read_features)
    assert "expected a NumPy array (.npy), found something else" in refusal(
        write_file(tmp_path, "v.npy", pickle.dumps(np.zeros(3))), "F50", read_features
    )


@pytest.mark.fault("F50")
def test_F50_features_of_another_model(tmp_path: Path) -> None:
    path = save_array(tmp_path, np.zeros((5, 7), np.float32))
    assert refusal(path, "F50", lambda p: read_features(p, channels=8)) == (
        "expected (T, 8), found (5, 7); these are not the features of this model"
    )
    square = save_array(tmp_path, np.zeros((8, 8), np.float32))
    assert "(8, 8) may be (T, C) or (C, T)" in refusal(square, "F50", lambda p: read_features(p, channels=8))


@pytest.mark.fault("F51")
def test_F51_features_of_another_length() -> None:
    for rows in (246, 247, 248):
        check_length(np.zeros((rows, 2), np.float32), duration=33.4, fps=30, stride=4, window=16)
    with refused("F51", DataError) as caught:
        check_length(np.zeros((123, 2), np.float32), duration=33.4, fps=30, stride=4, window=16)
    assert str(caught.value) == (
        "123 rows of features, expected 247 = (duration 33.4 s x 30 fps - window 16) / stride 4 + 1; check the rate "
        "and the stride they were extracted with"
    )
    with pytest.raises(BadValue, match="duration, fps, stride and window must be positive, got nan, 30, 4, 16"):
        check_length(np.zeros((1, 2), np.float32), math.nan, 30, 4, 16)
