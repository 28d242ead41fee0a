"""`jostle board` on the command line: run folders, records and refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.synthetic_runs import write_run
from jostle.cli.app import _run as run_command


@pytest.fixture
def run_cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jostle", *words])
        code = run_command()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_run_to_record_to_board(run_cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    code, out, err = run_cli("board", "--export", "mine", "--bootstrap", "20")
    assert (code, out) == (0, "mine.record.json\n")
    assert "kB; `jostle board` takes it" in err
    code, out, _ = run_cli("board", "mine.record.json", "-o", "board", "--json", "-q")
    printed = json.loads(out)
    assert (code, printed["index"]) == (0, "board/index.html")
    page = (tmp_path / "board" / "made-detection.html").read_text(encoding="utf-8")
    assert "guesser" in page
    (row,) = printed["boards"][0]["tables"][0]["rows"]
    assert row["self_reported"]  # it cannot be recomputed from a record
    assert "self-reported" in page
    printed = json.loads(run_cli("board", "mine", "-o", "board", "--json", "-q", "--bootstrap", "0")[1])
    assert not printed["boards"][0]["tables"][0]["rows"][0]["self_reported"]
    assert "self-reported" not in (tmp_path / "board" / "made-detection.html").read_text(encoding="utf-8")
    record = Path("mine.record.json")
    record.write_text(record.read_text(encoding="utf-8").replace('"guesser"', '"better"'), encoding="utf-8")
    code, out, err = run_cli("board", "mine.record.json", "-o", "board2")
    assert (code, out) == (6, "")
    assert err.startswith("error[F118]: mine.record.json: was changed after it was written")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("board", "mine"), "say where the board goes: -o DIR"),
        (("board", "--export", "one", "two"), "--export writes the record of one run"),
        (("board", "mine", "-o", "x", "--partial"), "--partial goes with --export"),
    ],
)
def test_conflicting_options_are_refused(run_cli: Any, words: tuple[str, ...], message: str) -> None:
    code, _, err = run_cli(*words)
    assert code == 2
    assert message in err


def test_published_tables(run_cli: Any) -> None:
    assert "thumos14-c/table-h" in run_cli("names", "published")[1].splitlines()
    lines = run_cli("names", "published", "mini-kinetics-c/table-2")[1].splitlines()
    assert lines[0].startswith("Yi et al. 2021, table 2: ")
    assert lines[2].split() == ["kinetics-c:", "S3D", "52.5", "75.7", "61.3", "88.4"]
    table = json.loads(run_cli("names", "published", "mini-kinetics-c/table-2", "--json")[1])
    assert table["rows"][8]["benchmark"] == "ssv2-c"
    code, _, err = run_cli("names", "corruptions", "fog")
    assert code == 2
    assert "only published tables are shown by name" in err
