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


def test_without_a_budget_files_are_checked(run_cli: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "recognition", videos=6)
    code, out, err = run_cli(str(run))
    assert (code, err) == (0, "")
    assert "6 of 6 videos" in out
    assert run_cli(str(run), "--json")[1].startswith('{\n  "format": 1,\n  "folder"')
    for more in (["--junit", "junit.xml"], ["--cells", "clean"], ["--bootstrap", "20"]):
        code, _, err = run_cli(str(run), *more)
        assert (code, "is of a gate; give it --budget FILE or --against RUN" in err) == (2, True)
    code, _, err = run_cli(str(run), "--against", str(run), "--dataset", "folder")
    assert (code, "leave them out for a run" in err) == (2, True)
    (run / "predictions" / "clean.npz").unlink()
    code, out, _ = run_cli(str(run))
    assert (code, "predictions/clean.npz was written and is gone" in out) == (4, True)
    code, _, err = run_cli(str(tmp_path / "nothing"))
    assert code == 3


def test_an_early_stop_brings_its_budget(run_cli: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "recognition", videos=6)
    record = json.loads((run / "run.json").read_text())
    record["stopped_early"] = {
        "reason": "decided",
        "conditions": [
            {"name": "clean", "metric": "clean", "decision": "pass", "value": 0.9, "limit": 0.1, "level": 0.95}
            | {"videos": 6, "reference": None}
        ],
        "videos": 6,
        "of": 6,
        "about": "these videos",
        "against": None,
    }
    (run / "run.json").write_text(json.dumps(record))
    code, out, _ = run_cli(str(run))
    assert out.splitlines()[0].split()[0] == "condition"
    assert code in (0, 8)


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
