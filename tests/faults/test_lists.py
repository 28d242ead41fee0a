"""Faults F105 and F107 to F109: lists with extreme times, class numbers, lines or names."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from helpers.refusals import refused
from jostle.datasets.dataset import Request, datasets
from jostle.datasets.layouts.classes import read_numbers
from jostle.errors import DataError
from jostle.io.files.annotations import read_video_labels
from jostle.io.files.label_list import read_ids


@pytest.mark.fault("F105")
@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e308", "-1", "1000000"])
@pytest.mark.parametrize("column", ["time_start", "time_end"])
def test_F105_invalid_clip_times_are_refused(value: str, column: str, tmp_path: Path) -> None:
    times = {"time_start": "1", "time_end": "11"} | {column: value}
    path = tmp_path / "val.csv"
    path.write_text(f"label,youtube_id,time_start,time_end,split\nrun,abc,{','.join(times.values())},val\n")
    with refused("F105", DataError, match=rf"line 2: {column} is '{value}', not a time in a video"):
        read_video_labels(path)


def folder_of_clips(root: Path, line: str) -> Request:
    (root / "val").mkdir()
    (root / "val" / "a.mp4").write_bytes(b"x")
    (root / "val_list.txt").write_text(line)
    return Request("validation", root)


@pytest.mark.fault("F107")
def test_F107_a_huge_class_number_allocates_no_classes_below_it(tmp_path: Path) -> None:
    with refused("F107", DataError, match="999999999 is no class number"):
        datasets["kinetics400"].load(folder_of_clips(tmp_path, "val/a.mp4 999999999\n"))


@pytest.mark.fault("F107")
@pytest.mark.parametrize("number", [f'"{"9" * 5000}"', '"²"', "1000000", "9" * 300, "-1"])
def test_F107_invalid_class_numbers_are_refused(number: str, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(f'{{"run": {number}}}')
    with pytest.raises(DataError, match=r"class run has .*, not a number"):
        read_numbers(tmp_path / "labels.json")


@pytest.mark.fault("F107")
def test_F107_an_id_that_is_a_number_of_5000_digits(tmp_path: Path) -> None:
    (tmp_path / "blocked.json").write_text(f"[{'9' * 5000}]")
    with pytest.raises(DataError, match="broken JSON"):
        read_ids(tmp_path / "blocked.json")


LINES = {
    "numbers": "a.mp4" + " 1" * 200_000 + " x",
    "spaces": "1 a" + " " * 200_000 + "b",
    "commas": "1" + "," * 200_000,
}


@pytest.mark.fault("F108")
@pytest.mark.parametrize("case", LINES)
def test_F108_long_lines_are_parsed_in_linear_time(case: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(f"{LINES[case]}\n")
    before = time.process_time()
    for read in (read_video_labels, read_numbers):
        try:
            read(path)
        except DataError:
            continue
    assert time.process_time() - before < 5  # quadratic backtracking would take minutes


@pytest.mark.fault("F109")
def test_F109_messages_have_a_bounded_length(tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(f'{{"{"x" * 1_000_000}": 1, "{"x" * 1_000_000}": 2}}')
    with pytest.raises(DataError, match="the key 'xxx") as caught:
        read_video_labels(path)
    assert str(caught.value).endswith("keep one of them")
    assert len(str(caught.value)) < 5000
