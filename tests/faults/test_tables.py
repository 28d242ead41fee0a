"""Faults F100 to F102: NumPy files that are damaged, too large, or no table of scores."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.refusals import refused
from jostle.errors import DataError
from jostle.evaluation.inference.feature_detection import read_video_scores
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.io.files.arrays import read_features, read_npz
from jostle.io.formats.frame_scores import read_frame_scores


def npy(header: str, content: bytes = b"", *, version: bytes = b"\x01\x00") -> bytes:
    """Return the bytes of a `.npy` file with any text as its header."""
    text = header.encode("latin-1")
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\x01\x00" else "<I", len(text)) + text + content


def header_text(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def archive(path: Path, members: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return path


def assert_refused(read: Any, path: Path, fault: str, message: str) -> None:
    with refused(fault, DataError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def names(*of: str) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array(of))
    return buffer.getvalue()


CLAIMS = {
    "values": npy(header_text("(10000000000000,)")),
    "values without end": npy(header_text("(1" + "0" * 30 + ",)")),
    "a row too many": npy(header_text("(3,)"), bytes(8)),
    "a row too few": npy(header_text("(1,)"), bytes(8)),
    "less than none": npy(header_text("(-1, 4)")),
    "nothing, very often": npy(header_text("(10000000000000,)", "'<U0'")),
    "no values of many columns": npy(header_text("(0, 9999999999999999999)")),
    "dimensions": npy(header_text(f"({'1,' * 40})"), bytes(4)),
    "objects": npy(header_text("(1,)", "'|O'"), bytes(8)),
    "fields": npy(header_text("(1,)", "[('a', '<f4')]"), bytes(4)),
    "long text": npy(header_text("(1,)", "'<U2000000000'")),
    "deep": npy("(" * 5000),
    "no dictionary": npy("[1, 2"),
    "no header": b"\x93NUMPY",
    "no array": b"hello",
    "a version to come": npy(header_text("(1,)"), bytes(4), version=b"\x09\x00"),
}


@pytest.mark.fault("F100")
@pytest.mark.parametrize("case", CLAIMS)
def test_F100_arrays_that_claim_missing_data_are_refused(case: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"frames": names("v/1.jpg"), "scores": CLAIMS[case]})
    assert_refused(read_frame_scores, path, "F100", "not an npz of plain arrays .*; write it again")
    assert_refused(lambda path: read_table(path, "frames"), path, "F100", "delete it, and the cell is run again")


@pytest.mark.fault("F100")
def test_F100_an_archive_that_unpacks_to_more_than_the_limit(tmp_path: Path) -> None:
    scores = npy(header_text("(500000, 2)"), bytes(4_000_000))
    path = archive(tmp_path / "a.npz", {"frames": names("v/1.jpg"), "scores": scores}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10_000
    assert_refused(lambda path: read_npz(path, max_bytes=1_000_000), path, "F100", "more than the limit of 1000000")
    assert read_npz(path)["scores"].shape == (500_000, 2)


@pytest.mark.fault("F100")
def test_F100_an_archive_with_false_sizes_is_refused(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "a.npz", {"scores": npy(header_text("(500000, 2)"), bytes(4_000_000))}, zipfile.ZIP_DEFLATED
    )
    data = path.read_bytes()
    size = struct.pack("<I", 4_000_000 + len(npy(header_text("(500000, 2)"))))
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, struct.pack("<I", 200)))
    assert_refused(read_npz, path, "F100", "not an npz of plain arrays")


@pytest.mark.fault("F100")
@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_F100_other_compression_methods(packing: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"frames": names("v/1.jpg")}, packing)
    assert_refused(read_frame_scores, path, "F100", "'frames' is compressed in another way than by np.savez")


@pytest.mark.fault("F100")
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_F100_damaged_archives_are_refused_or_read_correctly(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_table(path, "frames", ["v/1.jpg", "v/2.jpg"], np.ones((2, 3), np.float32))
    data = path.read_bytes()
    for at in range(0, len(data), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        try:
            videos, scores = read_table(path, "frames")
        except DataError:
            continue
        assert (videos, scores.tolist()) == (["v/1.jpg", "v/2.jpg"], [[1, 1, 1]] * 2), (
            "only what nobody reads may differ"
        )
    with zipfile.ZipFile(path, "w") as file:
        for _ in range(2):
            file.writestr("frames.npy", names("v/1.jpg"))
    assert_refused(read_npz, path, "F100", "'frames' appears twice")


@pytest.mark.fault("F100")
def test_F100_a_named_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    for read in (read_npz, read_frame_scores, read_features):
        assert_refused(read, tmp_path / "a.npz", "F18", "not a regular file")


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
def test_F101_tables_without_scores_are_refused(case: str, tmp_path: Path) -> None:
    frames, scores, message = TABLES[case]
    path = tmp_path / "a.npz"
    np.savez(path, frames=np.array(frames), scores=scores)
    assert_refused(read_frame_scores, path, "F101", message)
    assert_refused(lambda path: read_table(path, "frames"), path, "F101", message)


@pytest.mark.fault("F101")
def test_F101_a_class_may_be_unknown_to_a_model(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frames=np.array(["v/1.jpg"]), scores=np.array([[-np.inf, 1]], np.float32))
    assert read_table(tmp_path / "a.npz", "frames")[1].tolist() == [[-np.inf, 1]]


@pytest.mark.fault("F101")
def test_F101_a_run_writes_float32(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frames=np.array(["v/1.jpg"]), scores=np.array([[1e300, 1]]))
    assert_refused(lambda path: read_table(path, "frames"), tmp_path / "a.npz", "F101", "its scores are float64")


@pytest.mark.fault("F101")
@pytest.mark.parametrize("scores", ['["high"]', "[[1]]", "[true]", "true", "[null]", '"1"', "{}"])
def test_F101_invalid_scores_in_json_are_refused(scores: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"v/1.jpg": {scores}}}')
    assert_refused(
        read_frame_scores, tmp_path / "a.json", "F101", "'v/1.jpg' has .*, not a list of numbers or a class number"
    )


HEADERS = {
    "a quote without end": "{'descr': '<f4', 'shape': (2, 3), 'fortran_order': ",
    "a bracket without end": "{'descr': '<f4', 'shape': (2, 3",
    "three quotes": '"""',
    "an indent": "\n  1\n 2",
    "no Python": "\x00\x01",
    "deep": "[" * 3000,
    "a type that is none": header_text("(2, 3)", "'<q99'"),
    "a type of types": header_text("(2, 3)", "[[[]]]"),
}


@pytest.mark.fault("F102")
@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00"], ids=["1.0", "2.0"])
@pytest.mark.parametrize("case", HEADERS)
def test_F102_features_whose_header_is_damaged(case: str, version: bytes, tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(npy(HEADERS[case], bytes(24), version=version))
    assert_refused(read_features, tmp_path / "v.npy", "F50", r"v\.npy: broken header \(.+\); save it again")


@pytest.mark.fault("F101")
@pytest.mark.parametrize("scores", ['["high"]', "[[1, 2], [3]]", "[true]", "[null]", "[{}]", "[1e999]", "[]", '"1"'])
def test_F101_invalid_scores_of_videos_are_refused(scores: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"results": {{"v_1": {scores}}}}}')
    assert_refused(read_video_scores, tmp_path / "a.json", "F40", "video v_1 has .*, not a list of scores")


@pytest.mark.fault("F101")
def test_F101_invalid_classes_of_videos_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"results": {"v_1": [1, 2]}, "class": [1, []]}')
    assert_refused(
        read_video_scores, tmp_path / "a.json", "F45", "'class' is a list of 2, not the names of the classes"
    )
