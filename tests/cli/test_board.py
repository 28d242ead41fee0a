"""`jostle board` on the command line: run folders, records and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.command_line import assert_refused, succeed
from helpers.synthetic_runs import write_run


def test_run_to_record_to_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    exported = succeed("board", "--export", "mine", "--bootstrap", 20)
    assert exported.out == "mine.record.json\n"
    assert "kB; `jostle board` takes it" in exported.err
    printed = succeed("board", "mine.record.json", "-o", "board", "--json", "-q").json
    assert printed["index"] == "board/index.html"
    page = tmp_path / "board" / "made-detection.html"
    assert "guesser" in page.read_text(encoding="utf-8")
    (row,) = printed["boards"][0]["tables"][0]["rows"]
    assert row["self_reported"]  # it cannot be recomputed from a record
    assert "self-reported" in page.read_text(encoding="utf-8")
    printed = succeed("board", "mine", "-o", "board", "--json", "-q", "--bootstrap", 0).json
    assert not printed["boards"][0]["tables"][0]["rows"][0]["self_reported"]
    assert "self-reported" not in page.read_text(encoding="utf-8")
    record = Path("mine.record.json")
    record.write_text(record.read_text(encoding="utf-8").replace('"guesser"', '"better"'), encoding="utf-8")
    message = "error[F118]: mine.record.json: was changed after it was written"
    assert_refused(6, message, "board", "mine.record.json", "-o", "board2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("board mine", "say where the board goes: -o DIR"),
        ("board --export one two", "--export writes the record of one run"),
        ("board mine -o x --partial", "--partial goes with --export"),
        ("names corruptions fog", "only published tables are shown by name"),
    ],
)
def test_conflicting_options_are_refused(words: str, message: str) -> None:
    assert_refused(2, message, *words.split())


def test_published_tables() -> None:
    assert "thumos14-c/table-h" in succeed("names", "published").out.splitlines()
    lines = succeed("names", "published", "mini-kinetics-c/table-2").out.splitlines()
    assert lines[0].startswith("Yi et al. 2021, table 2: ")
    assert lines[2].split() == ["kinetics-c:", "S3D", "52.5", "75.7", "61.3", "88.4"]
    table = succeed("names", "published", "mini-kinetics-c/table-2", "--json").json
    assert table["rows"][8]["benchmark"] == "ssv2-c"
