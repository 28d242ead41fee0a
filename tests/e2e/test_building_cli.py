"""`jostle build` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from helpers.numpy_extractor import write_video
from jostle.cli.app import _run

RECIPE = """
name = "tiny-c"
version = 1
dataset = "folder"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1

[[groups]]
name = "main"
cells = ["freeze:3", "fog:1"]
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "test" / "wave").mkdir(parents=True)
    write_video(tmp_path / "data" / "test" / "wave" / "a.mkv", frames=12)
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_cli(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["jostle", *words])
    return _run()


def test_build_prints_folder_and_counts(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "build", "tiny.toml", "--data", "data", "-o", "out", "-j", "1") == 0
    captured = capfd.readouterr()
    assert captured.out == "out\n"
    assert "2 files made, 0 kept, 0 rebuilt" in captured.err
    assert (workspace / "out/freeze/3/test/wave/a.mp4").is_file()


def test_a_dry_run_writes_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "build", "tiny.toml", "--data", "data", "-o", "out", "--dry-run", "--json") == 0
    payload = json.loads(capfd.readouterr().out)
    assert payload["cells"] == ["freeze:3", "fog:1"]
    assert payload["files"] == 2
    assert not (workspace / "out").exists()


def test_bad_videos_exit_with_code_4(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (workspace / "data/test/wave/b.mp4").write_bytes(b"nothing")
    assert run_cli(monkeypatch, "build", "tiny.toml", "--data", "data", "-o", "out", "-j", "1", "--json") == 4
    captured = capfd.readouterr()
    assert sorted(json.loads(captured.out)["failures"]) == ["fog/1/test/wave/b.mp4", "freeze/3/test/wave/b.mp4"]
    assert "fog/1/test/wave/b.mp4: set aside: " in captured.err


def test_layouts_for_other_programs_are_listed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["build", "tiny.toml", "--data", "data", "-o", "out", "-j", "1", "--layout", "hub", "--layout", "croissant"]
    assert run_cli(monkeypatch, *words) == 0
    assert "for other programs: metadata.jsonl, README.md, croissant.json" in capfd.readouterr().err
    assert run_cli(monkeypatch, *words, "--json") == 0
    printed = json.loads(capfd.readouterr().out)
    assert (printed["kept"], printed["layouts"]) == (2, ["metadata.jsonl", "README.md", "croissant.json"])
    assert (workspace / "out/croissant.json").is_file()
    assert run_cli(monkeypatch, *words, "--layout", "zip") == 2
    assert "no layout is called 'zip'" in capfd.readouterr().err
