"""`jostle diff` on the command line: output formats, colours on terminals only, exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.command_line import assert_refused, call, succeed
from helpers.synthetic_runs import CELLS, write_run
from jostle.cli import console


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("diff")
    return str(write_run(folder / "weak_one")), str(write_run(folder / "firm", weakness=0.3))


def test_diff_table(runs: tuple[str, str]) -> None:
    _, out, err = succeed("diff", *runs, "--bootstrap", 40)
    lines = out.splitlines()
    assert lines[0] == "made-detection, mAP@0.3:0.7, 12 videos: firm less weak_one"
    assert lines[1].split() == ["weak_one", "%", "firm", "%", "difference", "95", "%", "interval"]
    assert [line.split("  ")[0] for line in lines[2:]] == ["clean", *CELLS, "mean corrupted", "relative robustness"]
    assert re.search(r"mean corrupted +\d+\.\d\d +\d+\.\d\d +\+\d+\.\d\d +\[\d+\.\d\d, \d+\.\d\d\]  \*$", lines[-2])
    assert "\x1b" not in out
    assert "* significant: the 95 % interval excludes 0" in err


def test_other_output_formats(runs: tuple[str, str]) -> None:
    common = ("diff", *runs, "--bootstrap", "40", "-q")
    payload = succeed(*common, "--json").json
    assert [cell["cell"] for cell in payload["cells"]] == list(CELLS)
    markdown = succeed(*common, "--markdown").out.splitlines()
    assert markdown[0].startswith(r"|  | weak\_one | firm |")
    assert len(markdown) == 2 + 1 + len(CELLS) + 2
    latex = succeed(*common, "--latex").out
    assert latex.startswith(r"\begin{tabular}{lrrrr}")
    means = [payload[name] for name in ("clean", "mean_corrupted", "relative_robustness")]
    clear = sum(part["clear"] for part in (*payload["cells"], *means))
    assert latex.count(r"\textbf") == clear > 0
    assert_refused(2, "give one of them", *common, "--latex", "--json")


def test_refusals_and_exit_codes(runs: tuple[str, str], tmp_path: Path) -> None:
    fewer = write_run(tmp_path / "fewer", videos=11)
    code, out, err = call("diff", runs[0], fewer)
    assert (code, out) == (6, "")
    assert err.startswith("error[F48]: ")
    assert "--any-truth" in err
    succeed("diff", runs[0], fewer, "--any-truth", "--bootstrap", 0)
    assert call("diff", runs[0], tmp_path / "nothing").code == 3


def test_colours_on_a_terminal_only(runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "drawing", lambda: True)
    out = succeed("diff", *runs, "--bootstrap", 40).out
    coloured = [line for line in out.splitlines() if line.startswith("\x1b[32m")]
    assert coloured
    assert all(line.endswith("*\x1b[0m") for line in coloured)
    reversed_out = succeed("diff", *runs[::-1], "--bootstrap", 40).out
    assert reversed_out.count("\x1b[31m") == len(coloured)
