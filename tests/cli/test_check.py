"""`jostle check` on the command line: exit codes, table, JUnit and output for build servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.synthetic_runs import write_run
from jostle.cli.app import _run as run_command


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("check")
    sound = write_run(folder / "sound", "recognition", videos=200)
    return str(sound), str(write_run(folder / "frail", "recognition", videos=200, weakness=2.5))


@pytest.fixture
def run_cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jostle", "check", *words])
        code = run_command()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_exit_codes(run_cli: Any, runs: tuple[str, str]) -> None:
    sound, frail = runs
    assert run_cli(sound, "--against", frail)[0] == 0
    code, out, err = run_cli(frail, "--against", sound)
    assert code == 7
    lines = out.splitlines()
    assert lines[0].split() == ["condition", "value", "interval", "limit", "videos", "decision"]
    assert [line.split()[-1] for line in lines[1:3]] == ["pass", "fail"]
    assert lines[3] == "fail: 1 pass, 1 fail of 2 conditions"
    assert "Holm" in err
    Path("budget.toml").write_text('[[condition]]\nmetric = "clean"\nat_least = 0.945\n')
    assert run_cli(sound, "--budget", "budget.toml")[0] == 8
    Path("budget.toml").write_text('[[condition]]\nmetric = "clean"\nat_leats = 0.9\n')
    code, _, err = run_cli(sound, "--budget", "budget.toml")
    assert code == 2
    assert "did you mean at_least?" in err
    assert run_cli(sound)[0] == 2


def test_outputs_for_build_servers(run_cli: Any, runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    sound, frail = runs
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n")
    code, out, err = run_cli(frail, "--against", sound, "--junit", "junit.xml", "--json")
    assert code == 7
    content = json.loads(out)
    assert [one["decision"] for one in content["conditions"]] == ["pass", "fail"]
    assert "::error title=jostle check%3A mean_corrupted" in err
    assert Path("summary.md").read_text().startswith("before\n### jostle check: fail\n")
    assert 'failures="1"' in Path("junit.xml").read_text()
