"""Faults F100 to F102: NumPy's files that claim, unpack to, or hold what no table of scores does."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.errors import DataError
from jostle.evaluation.inference.feature_detection import read_video_scores
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.io.files.arrays import read_features, read_npz
from jostle.io.formats.frame_scores import read_frame_scores


def npy(header: str, content: bytes = b"", *, version: bytes = b"\x01\x00") -> bytes:
    """A `.npy` file with any text for a header."""
    text = header.encode("latin-1")
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\x01\x00" else "<I", len(text)) + text + content


def about(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def archive(path: Path, members: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as made:
        for name, data in members.items():
            made.writestr(f"{name}.npy", data)
    return path


def refused(read: Any, path: Path, fault: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert caught.value.fault == fault
    assert str(path) in str(caught.value)


def names(*of: str) -> bytes:
    held = io.BytesIO()
    np.save(held, np.array(of))
    return held.getvalue()


CLAIMS = {
    "values": npy(about("(10000000000000,)")),
    "values without end": npy(about("(1" + "0" * 30 + ",)")),
    "a row too many": npy(about("(3,)"), bytes(8)),
    "a row too few": npy(about("(1,)"), bytes(8)),
    "less than none": npy(about("(-1, 4)")),
    "nothing, very often": npy(about("(10000000000000,)", "'<U0'")),
    "no values of many columns": npy(about("(0, 9999999999999999999)")),
    "dimensions": npy(about(f"({'1,' * 40})"), bytes(4)),
    "objects": npy(about("(1,)", "'|O'"), bytes(8)),
    "fields": npy(about("(1,)", "[('a', '<f4')]"), bytes(4)),
    "long text": npy(about("(1,)", "'<U2000000000'")),
    "deep": npy("(" * 5000),
    "no dictionary": npy("[1, 2"),
    "no header": b"\x93NUMPY",
    "no array": b"hello",
    "a version to come": npy(about("(1,)"), bytes(4), version=b"\x09\x00"),
}


@pytest.mark.fault("F100")
@pytest.mark.parametrize("case", CLAIMS)
def test_F100_an_array_that_claims_what_is_not_there(case: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"frames": names("v/1.jpg"), "scores": CLAIMS[case]})
    refused(read_frame_scores, path, "F100", "not an npz of plain arrays .*; write it again")
    refused(lambda path: read_table(path, "frames"), path, "F100", "delete it, and the cell is run again")


@pytest.mark.fault("F100")
def test_F100_an_archive_that_unpacks_to_more_than_the_limit(tmp_path: Path) -> None:
    scores = npy(about("(500000, 2)"), bytes(4_000_000))
    path = archive(tmp_path / "a.npz", {"frames": names("v/1.jpg"), "scores": scores}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10_000
    refused(lambda path: read_npz(path, max_bytes=1_000_000), path, "F100", "more than the limit of 1000000")
    assert read_npz(path)["scores"].shape == (500_000, 2)


@pytest.mark.fault("F100")
def test_F100_an_archive_that_lies_about_what_it_unpacks_to(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"scores": npy(about("(500000, 2)"), bytes(4_000_000))}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    size = struct.pack("<I", 4_000_000 + len(npy(about("(500000, 2)"))))
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, struct.pack("<I", 200)))
    refused(read_npz, path, "F100", "not an npz of plain arrays")


@pytest.mark.fault("F100")
@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_F100_another_packing(packing: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"frames": names("v/1.jpg")}, packing)
    refused(read_frame_scores, path, "F100", "'frames' is compressed in another way than by np.savez")


@pytest.mark.fault("F100")
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_F100_damage_to_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_table(path, "frames", ["v/1.jpg", "v/2.jpg"], np.ones((2, 3), np.float32))
    data = path.read_bytes()
    for at in range(0, len(data), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        try:
            found, scores = read_table(path, "frames")
        except DataError:
            continue
        assert (found, scores.tolist()) == (["v/1.jpg", "v/2.jpg"], [[1, 1, 1]] * 2), (
            "only what nobody reads may differ"
        )
    with zipfile.ZipFile(path, "w") as made:
        for _ in range(2):
            made.writestr("frames.npy", names("v/1.jpg"))
    refused(read_npz, path, "F100", "'frames' appears twice")


@pytest.mark.fault("F100")
def test_F100_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    for read in (read_npz, read_frame_scores, read_features):
        refused(read, tmp_path / "a.npz", "F18", "not a regular file")


TABLES: dict[str, tuple[Any, Any, str]] = {
    "text": (["v/1.jpg"], np.array([["high", "low"]]), "not numbers"),
    "not a number": (["v/1.jpg"], np.array([[np.nan, 1]], np.float32), "1 of 1 rows of scores hold NaN or infinity"),
    "infinite": (["v/1.jpg"], np.array([[np.inf, 1]], np.float32), "the first of 'v/1.jpg'"),
    "one row": (["v/1.jpg"], np.ones(3, np.float32), r"needs 'frames' \(N,\) text and 'scores' \(N, C\) numbers"),
    "no columns": (["v/1.jpg"], np.ones((1, 0), np.float32), "not numbers"),
    "another number of rows": (["v/1.jpg"], np.ones((2, 3), np.float32), "1 frames but 2 rows of scores"),
    "one frame twice": (["v/1.jpg"] * 2, np.ones((2, 3), np.float32), "names one of them twice"),
    "numbers for names": ([1], np.ones((1, 3), np.float32), "needs 'frames'"),
    "no characters": (np.array([2**31 - 1], "<i4").view("<U1"), np.ones((1, 3), np.float32), "'frames' is not text"),
}


@pytest.mark.fault("F101")
@pytest.mark.parametrize("case", TABLES)
def test_F101_a_table_that_holds_no_scores(case: str, tmp_path: Path) -> None:
    frames, scores, message = TABLES[case]
    path = tmp_path / "a.npz"
    np.savez(path, frames=np.array(frames), scores=scores)
    refused(read_frame_scores, path, "F101", message)
    refused(lambda path: read_table(path, "frames"), path, "F101", message)


@pytest.mark.fault("F101")
def test_F101_a_class_may_be_unknown_to_a_model(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frames=np.array(["v/1.jpg"]), scores=np.array([[-np.inf, 1]], np.float32))
    assert read_table(tmp_path / "a.npz", "frames")[1].tolist() == [[-np.inf, 1]]


@pytest.mark.fault("F101")
def test_F101_a_run_writes_float32(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frames=np.array(["v/1.jpg"]), scores=np.array([[1e300, 1]]))
    refused(lambda path: read_table(path, "frames"), tmp_path / "a.npz", "F101", "its scores are float64")


@pytest.mark.fault("F101")
@pytest.mark.parametrize("scores", ['["high"]', "[[1]]", "[true]", "true", "[null]", '"1"', "{}"])
def test_F101_scores_in_json_that_are_none(scores: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"v/1.jpg": {scores}}}')
    refused(read_frame_scores, tmp_path / "a.json", "F101", "'v/1.jpg' has .*, not a list of numbers or a class number")


HEADERS = {
    "a quote without end": "{'descr': '<f4', 'shape': (2, 3), 'fortran_order': ",
    "a bracket without end": "{'descr': '<f4', 'shape': (2, 3",
    "three quotes": '"""',
    "an indent": "\n  1\n 2",
    "no Python": "\x00\x01",
    "deep": "[" * 3000,
    "a type that is none": about("(2, 3)", "'<q99'"),
    "a type of types": about("(2, 3)", "[[[]]]"),
}


@pytest.mark.fault("F102")
@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00"], ids=["1.0", "2.0"])
@pytest.mark.parametrize("case", HEADERS)
def test_F102_features_whose_header_is_damaged(case: str, version: bytes, tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(npy(HEADERS[case], bytes(24), version=version))
    refused(read_features, tmp_path / "v.npy", "F50", r"v\.npy: broken header \(.+\); save it again")


@pytest.mark.fault("F101")
@pytest.mark.parametrize("scores", ['["high"]', "[[1, 2], [3]]", "[true]", "[null]", "[{}]", "[1e999]", "[]", '"1"'])
def test_F101_scores_of_videos_that_are_none(scores: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"results": {{"v_1": {scores}}}}}')
    refused(read_video_scores, tmp_path / "a.json", "F40", "video v_1 has .*, not a list of scores")


@pytest.mark.fault("F101")
def test_F101_classes_of_videos_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"results": {"v_1": [1, 2]}, "class": [1, []]}')
    refused(read_video_scores, tmp_path / "a.json", "F45", "'class' is a list of 2, not the names of the classes")
