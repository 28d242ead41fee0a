"""`jostle diff` on the command line: output formats, colours on terminals only, exit codes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.synthetic_runs import CELLS, write_run
from jostle.cli import console
from jostle.cli.app import _run as run_command


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("diff")
    return str(write_run(folder / "weak_one")), str(write_run(folder / "firm", weakness=0.3))


@pytest.fixture
def run_cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jostle", *words])
        code = run_command()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_diff_table(run_cli: Any, runs: tuple[str, str]) -> None:
    code, out, err = run_cli("diff", *runs, "--bootstrap", "40")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "made-detection, mAP@0.3:0.7, 12 videos: firm less weak_one"
    assert lines[1].split() == ["weak_one", "%", "firm", "%", "difference", "95", "%", "interval"]
    assert [line.split("  ")[0] for line in lines[2:]] == ["clean", *CELLS, "mean corrupted", "relative robustness"]
    assert re.search(r"mean corrupted +\d+\.\d\d +\d+\.\d\d +\+\d+\.\d\d +\[\d+\.\d\d, \d+\.\d\d\]  \*$", lines[-2])
    assert "\x1b" not in out
    assert "* significant: the 95 % interval excludes 0" in err


def test_other_output_formats(run_cli: Any, runs: tuple[str, str]) -> None:
    common = ("diff", *runs, "--bootstrap", "40", "-q")
    payload = json.loads(run_cli(*common, "--json")[1])
    assert [cell["cell"] for cell in payload["cells"]] == list(CELLS)
    markdown = run_cli(*common, "--markdown")[1].splitlines()
    assert markdown[0].startswith(r"|  | weak\_one | firm |")
    assert len(markdown) == 2 + 1 + len(CELLS) + 2
    latex = run_cli(*common, "--latex")[1]
    assert latex.startswith(r"\begin{tabular}{lrrrr}")
    means = [payload[name] for name in ("clean", "mean_corrupted", "relative_robustness")]
    clear = sum(part["clear"] for part in (*payload["cells"], *means))
    assert latex.count(r"\textbf") == clear > 0
    code, _, err = run_cli(*common, "--latex", "--json")
    assert code == 2
    assert "give one of them" in err


def test_refusals_and_exit_codes(run_cli: Any, runs: tuple[str, str], tmp_path: Path) -> None:
    fewer = str(write_run(tmp_path / "fewer", videos=11))
    code, out, err = run_cli("diff", runs[0], fewer)
    assert (code, out) == (6, "")
    assert err.startswith("error[F48]: ")
    assert "--any-truth" in err
    assert run_cli("diff", runs[0], fewer, "--any-truth", "--bootstrap", "0")[0] == 0
    assert run_cli("diff", runs[0], str(tmp_path / "nothing"))[0] == 3


def test_colours_on_a_terminal_only(run_cli: Any, runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "drawing", lambda: True)
    out = run_cli("diff", *runs, "--bootstrap", "40")[1]
    coloured = [line for line in out.splitlines() if line.startswith("\x1b[32m")]
    assert coloured
    assert all(line.endswith("*\x1b[0m") for line in coloured)
    reversed_out = run_cli("diff", *runs[::-1], "--bootstrap", "40")[1]
    assert reversed_out.count("\x1b[31m") == len(coloured)
