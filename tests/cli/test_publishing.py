"""`jostle report --as` and `--latex` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from helpers.synthetic_runs import write_run
from jostle.cli.app import _run as run_command


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "run", "recognition", videos=6)


def run_cli(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["jostle", *map(str, words)])
    return run_command()


def test_cards(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(monkeypatch, "report", run, "--as", "card", "-o", tmp_path, "--json") == 0
    paths = json.loads(capsys.readouterr().out)
    assert Path(paths["model"]).is_file()
    assert Path(paths["dataset"]).is_file()
    assert run_cli(monkeypatch, "report", run, "--as", "card", "-o", tmp_path) == 3
    assert "is there already" in capsys.readouterr().err


def test_trackers(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert run_cli(monkeypatch, "report", run, "--as", "wandb", "-o", tmp_path / "there") == 2
    assert "pip install 'jostle[wandb]'" in capsys.readouterr().err
    assert not (tmp_path / "there").exists()
    assert run_cli(monkeypatch, "report", run, "--as", "wandbb") == 2
    assert "did you mean wandb" in capsys.readouterr().err
    assert not (run / "tracking").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--as", "card"], "say where the cards go: -o DIR"),
        (["--as", "cart", "-o", "x"], "no form of a report is called 'cart': did you mean card?"),
        (["--as", "wandb", "--csv", "x.csv"], "--csv is of the page; leave it out with --as wandb"),
        (["--as", "wandb", "--licence", "mit"], "--licence goes with --as card"),
        (["other", "--as", "card", "-o", "x"], "--as card is of one run; name one"),
    ],
)
def test_options_of_another_form_are_refused(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    assert run_cli(monkeypatch, "report", run, *words) == 2
    assert message in capsys.readouterr().err


def test_report_with_latex_tables(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("report", run, "-o", tmp_path / "r.html", "--latex", tmp_path / "tex", "--latex-intervals")
    assert run_cli(monkeypatch, *words, "--bootstrap", "20", "--json", "-q") == 0
    assert json.loads(capsys.readouterr().out)["latex"] == str(tmp_path / "tex")
    assert r"\scriptsize [" in (tmp_path / "tex" / "thumos14-c-table-1.tex").read_text()
