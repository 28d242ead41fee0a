"""`jostle report` on the command line: the page, tables beside it, cards and trackers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helpers.command_line import assert_refused, call, succeed
from helpers.synthetic_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "run", "recognition", videos=6)


def test_report_and_csv(tmp_path: Path) -> None:
    write_run(tmp_path / "one", videos=4)
    write_run(tmp_path / "two", videos=4, model="firmer", weakness=0.3)
    called = succeed("report", "one", "two", "--csv", "cells.csv", "--bootstrap", 20, cwd=tmp_path)
    assert called.out == "report.html\n"
    assert "MB; open it in a browser" in called.err
    assert "<!doctype html>" in (tmp_path / "report.html").read_text()[:2000]
    lines = (tmp_path / "cells.csv").read_text().splitlines()
    assert lines[0].startswith("run,cell,mAP@0.3:0.7 (%),95 % interval low (%)")
    assert len(lines) == 1 + 2 * (5 + 1)


def test_json_and_quiet_with_latex_tables(run: Path, tmp_path: Path) -> None:
    out, tables = tmp_path / "r.html", tmp_path / "tex"
    called = succeed(
        "report", run, "-o", out, "--latex", tables, "--latex-intervals", "--bootstrap", 20, "--json", "-q"
    )
    expected = {"format": 1, "report": str(out), "bytes": out.stat().st_size, "csv": None, "latex": str(tables)}
    assert expected.items() <= called.json.items()
    assert called.err == ""
    assert r"\scriptsize [" in (tables / "thumos14-c-table-1.tex").read_text()


def test_invalid_runs_are_refused(tmp_path: Path) -> None:
    assert_refused(3, "no run.json there; give the folder that `jostle run` wrote", "report", tmp_path)
    folder = write_run(tmp_path / "run", videos=3)
    words = ("report", folder, "-o", tmp_path / "no" / "r.html", "--bootstrap", 0)
    assert_refused(3, "its folder does not exist", *words)
    (folder / "scores.json").write_text("{")
    code, _, err = call("report", folder, "-o", tmp_path / "r.html")
    assert (code, "scores.json: broken JSON at line 1" in err) == (3, True)
    assert "the same `jostle run` resumes and writes it again" in err


def test_cards(run: Path, tmp_path: Path) -> None:
    paths = succeed("report", run, "--as", "card", "-o", tmp_path, "--json").json
    assert Path(paths["model"]).is_file()
    assert Path(paths["dataset"]).is_file()
    assert_refused(3, "is there already", "report", run, "--as", "card", "-o", tmp_path)


def test_trackers(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    words = ("report", run, "--as", "wandb", "-o", tmp_path / "there")
    assert_refused(2, "pip install 'jostle[wandb]'", *words)
    assert not (tmp_path / "there").exists()
    assert_refused(2, "did you mean wandb", "report", run, "--as", "wandbb")
    assert not (run / "tracking").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--as card", "say where the cards go: -o DIR"),
        ("--as cart -o x", "no form of a report is called 'cart': did you mean card?"),
        ("--as wandb --csv x.csv", "--csv is of the page; leave it out with --as wandb"),
        ("--as wandb --licence mit", "--licence goes with --as card"),
        ("other --as card -o x", "--as card is of one run; name one"),
    ],
)
def test_options_of_another_form_are_refused(run: Path, words: str, message: str) -> None:
    assert_refused(2, message, "report", run, *words.split())
