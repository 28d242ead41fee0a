"""`jostle diff` as it is typed: three forms, colours on a terminal only, refusals with their code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.made_runs import CELLS, made_run
from jostle.cli import console
from jostle.cli.app import _run as run_command


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("diff")
    return str(made_run(folder / "weak_one")), str(made_run(folder / "firm", weakness=0.3))


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def type_in(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jostle", *words])
        code = run_command()
        told = capsys.readouterr()
        return code, told.out, told.err

    return type_in


def test_the_table(typed: Any, runs: tuple[str, str]) -> None:
    code, out, err = typed("diff", *runs, "--bootstrap", "40")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "made-detection, mAP@0.3:0.7 in percent, 12 videos"
    assert lines[1].split() == ["cell", "weak_one", "firm", "difference", "95", "%"]
    assert [line.split("  ")[0] for line in lines[2:]] == ["clean", *CELLS, "mean corrupted", "relative robustness"]
    assert re.search(r"mean corrupted +\d+\.\d\d +\d+\.\d\d +\+\d+\.\d\d +\[\d+\.\d\d, \d+\.\d\d\]  \*$", lines[-2])
    assert "\x1b" not in out
    assert "* significant: the 95 % interval excludes 0" in err


def test_other_forms(typed: Any, runs: tuple[str, str]) -> None:
    common = ("diff", *runs, "--bootstrap", "40", "-q")
    told = json.loads(typed(*common, "--json")[1])
    assert [cell["cell"] for cell in told["cells"]] == list(CELLS)
    markdown = typed(*common, "--markdown")[1].splitlines()
    assert markdown[0].startswith(r"|  | weak\_one | firm |")
    assert len(markdown) == 2 + 1 + len(CELLS) + 2
    latex = typed(*common, "--latex")[1]
    assert latex.startswith(r"\begin{tabular}{lrrrr}")
    means = [told[name] for name in ("clean", "mean_corrupted", "relative_robustness")]
    clear = sum(part["clear"] for part in (*told["cells"], *means))
    assert latex.count(r"\textbf") == clear > 0
    code, _, err = typed(*common, "--latex", "--json")
    assert code == 2
    assert "give one of them" in err


def test_refusals(typed: Any, runs: tuple[str, str], tmp_path: Path) -> None:
    fewer = str(made_run(tmp_path / "fewer", videos=11))
    code, out, err = typed("diff", runs[0], fewer)
    assert (code, out) == (6, "")
    assert err.startswith("error[F48]: ")
    assert "--any-truth" in err
    assert typed("diff", runs[0], fewer, "--any-truth", "--bootstrap", "0")[0] == 0
    assert typed("diff", runs[0], str(tmp_path / "nothing"))[0] == 3


def test_colours_on_a_terminal_only(typed: Any, runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "drawing", lambda: True)
    out = typed("diff", *runs, "--bootstrap", "40")[1]
    painted = [line for line in out.splitlines() if line.startswith("\x1b[32m")]
    assert painted
    assert all(line.endswith("*\x1b[0m") for line in painted)
    back = typed("diff", *runs[::-1], "--bootstrap", "40")[1]
    assert back.count("\x1b[31m") == len(painted)
