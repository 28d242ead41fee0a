"""`jostle check` on the command line: exit codes, table, JUnit and output for build servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.command_line import assert_refused, call, succeed
from helpers.synthetic_runs import write_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("check")
    sound = write_run(folder / "sound", "recognition", videos=200)
    return str(sound), str(write_run(folder / "frail", "recognition", videos=200, weakness=2.5))


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty folder that no build server works in."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_exit_codes(runs: tuple[str, str]) -> None:
    sound, frail = runs
    assert call("check", sound, "--against", frail).code == 0
    code, out, err = call("check", frail, "--against", sound)
    assert code == 7
    lines = out.splitlines()
    assert lines[0].split() == ["condition", "value", "interval", "limit", "videos", "decision"]
    assert [line.split()[-1] for line in lines[1:3]] == ["pass", "fail"]
    assert lines[3] == "fail: 1 pass, 1 fail of 2 conditions"
    assert "Holm" in err
    Path("budget.toml").write_text('[[condition]]\nmetric = "clean"\nat_least = 0.945\n')
    assert call("check", sound, "--budget", "budget.toml").code == 8
    Path("budget.toml").write_text('[[condition]]\nmetric = "clean"\nat_leats = 0.9\n')
    assert_refused(2, "did you mean at_least?", "check", sound, "--budget", "budget.toml")


def test_without_a_budget_files_are_checked(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "recognition", videos=6)
    code, out, err = call("check", run)
    assert (code, err) == (0, "")
    assert "6 of 6 videos" in out
    assert succeed("check", run, "--json").out.startswith('{\n  "format": 1,\n  "folder"')
    for more in (["--junit", "junit.xml"], ["--cells", "clean"], ["--bootstrap", 20]):
        assert_refused(2, "is of a gate; give it --budget FILE or --against RUN", "check", run, *more)
    assert_refused(2, "leave them out for a run", "check", run, "--against", run, "--dataset", "folder")
    (run / "predictions" / "clean.npz").unlink()
    code, out, _ = call("check", run)
    assert (code, "predictions/clean.npz was written and is gone" in out) == (4, True)
    assert call("check", tmp_path / "nothing").code == 3


def test_an_early_stop_brings_its_budget(tmp_path: Path) -> None:
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
    code, out, _ = call("check", run)
    assert out.splitlines()[0].split()[0] == "condition"
    assert code in (0, 8)


def test_outputs_for_build_servers(runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    sound, frail = runs
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n")
    code, out, err = call("check", frail, "--against", sound, "--junit", "junit.xml", "--json")
    assert code == 7
    content = json.loads(out)
    assert [one["decision"] for one in content["conditions"]] == ["pass", "fail"]
    assert "::error title=jostle check%3A mean_corrupted" in err
    assert Path("summary.md").read_text().startswith("before\n### jostle check: fail\n")
    assert 'failures="1"' in Path("junit.xml").read_text()
