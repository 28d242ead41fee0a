"""`build`, as a user meets it."""

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
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "test" / "wave").mkdir(parents=True)
    write_video(tmp_path / "data" / "test" / "wave" / "a.mkv", frames=12)
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def say(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["jostle", *words])
    return _run()


def test_it_says_where_and_how_many(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert say(monkeypatch, "build", "tiny.toml", "--data", "data", "-o", "out", "-j", "1") == 0
    told = capfd.readouterr()
    assert told.out == "out\n"
    assert "2 files made, 0 kept, 0 rebuilt" in told.err
    assert (here / "out/freeze/3/test/wave/a.mp4").is_file()


def test_a_dry_run_writes_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert say(monkeypatch, "build", "tiny.toml", "--data", "data", "-o", "out", "--dry-run", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert told["cells"] == ["freeze:3", "fog:1"]
    assert told["files"] == 2
    assert not (here / "out").exists()


def test_bad_videos_end_with_code_4(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "data/test/wave/b.mp4").write_bytes(b"nothing")
    assert say(monkeypatch, "build", "tiny.toml", "--data", "data", "-o", "out", "-j", "1", "--json") == 4
    told = capfd.readouterr()
    assert sorted(json.loads(told.out)["failures"]) == ["fog/1/test/wave/b.mp4", "freeze/3/test/wave/b.mp4"]
    assert "fog/1/test/wave/b.mp4: set aside: " in told.err


def test_layouts_for_other_programs_are_listed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["build", "tiny.toml", "--data", "data", "-o", "out", "-j", "1", "--layout", "hub", "--layout", "croissant"]
    assert say(monkeypatch, *words) == 0
    assert "for other programs: metadata.jsonl, README.md, croissant.json" in capfd.readouterr().err
    assert say(monkeypatch, *words, "--json") == 0
    printed = json.loads(capfd.readouterr().out)
    assert (printed["kept"], printed["layouts"]) == (2, ["metadata.jsonl", "README.md", "croissant.json"])
    assert (here / "out/croissant.json").is_file()
    assert say(monkeypatch, *words, "--layout", "zip") == 2
    assert "no layout is called 'zip'" in capfd.readouterr().err
