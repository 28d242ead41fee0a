"""`jostle report` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from helpers.synthetic_runs import write_run
from jostle.cli.app import _run


def run_cli(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["jostle", *words])
    return _run()


def test_report_and_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "one", videos=4)
    write_run(tmp_path / "two", videos=4, model="firmer", weakness=0.3)
    monkeypatch.chdir(tmp_path)
    assert run_cli(monkeypatch, "report", "one", "two", "--csv", "cells.csv", "--bootstrap", "20") == 0
    captured = capsys.readouterr()
    assert captured.out == "report.html\n"
    assert "MB; open it in a browser" in captured.err
    assert "<!doctype html>" in (tmp_path / "report.html").read_text()[:2000]
    lines = (tmp_path / "cells.csv").read_text().splitlines()
    assert lines[0].startswith("run,cell,mAP@0.3:0.7 (%),95 % interval low (%)")
    assert len(lines) == 1 + 2 * (5 + 1)


def test_json_and_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run", "recognition", videos=4)
    out = tmp_path / "r.html"
    assert run_cli(monkeypatch, "report", str(tmp_path / "run"), "-o", str(out), "--json", "-q") == 0
    captured = capsys.readouterr()
    expected = {"format": 1, "report": str(out), "bytes": out.stat().st_size, "csv": None}
    assert expected.items() <= json.loads(captured.out).items()
    assert captured.err == ""


def test_invalid_runs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "report", str(tmp_path), "-o", str(tmp_path / "r.html")) == 3
    assert "no run.json there; give the folder that `jostle run` wrote" in capsys.readouterr().err
    folder = write_run(tmp_path / "run", videos=3)
    assert run_cli(monkeypatch, "report", str(folder), "-o", str(tmp_path / "no" / "r.html"), "--bootstrap", "0") == 3
    assert "its folder does not exist" in capsys.readouterr().err
    (folder / "scores.json").write_text("{")
    assert run_cli(monkeypatch, "report", str(folder), "-o", str(tmp_path / "r.html")) == 3
    stderr = capsys.readouterr().err
    assert "scores.json: broken JSON at line 1" in stderr
    assert "the same `jostle run` resumes and writes it again" in stderr
