"""Verification of a copy of a data set: present, missing and unreadable videos."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helpers.numpy_extractor import write_video
from jostle.api import verify
from jostle.cli.app import _run


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for seed, name in enumerate(("wave/a", "wave/b", "nod/c")):
        (tmp_path / "test" / name).parent.mkdir(parents=True, exist_ok=True)
        write_video(tmp_path / "test" / f"{name}.mkv", frames=5, seed=seed)
    return tmp_path


def test_a_complete_copy(copy: Path) -> None:
    result = verify(copy, dataset="folder", subset="test")
    assert not result.lacking
    assert result.to_dict()["videos"] == 3


def test_unreadable_videos_are_reported(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / "test" / "nod" / "c.mkv").write_bytes(b"cut off")
    monkeypatch.setattr(sys, "argv", ["jostle", "check", str(copy), "--dataset", "folder", "--subset", "test"])
    assert _run() == 4
    assert "c cannot be used: " in capsys.readouterr().out
