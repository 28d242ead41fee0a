"""A folder has one owner, and whoever was killed is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jostle.errors import DataError, ResourceError
from jostle.io.files.lock import NOTE, FolderLock


def test_one_at_a_time(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "new" / "folder"), pytest.raises(ResourceError, match=f"process {os.getpid()} on"):
        FolderLock(tmp_path / "new" / "folder")
    with FolderLock(tmp_path / "new" / "folder"):
        assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [NOTE]
    assert not list((tmp_path / "new" / "folder").iterdir())


def test_a_note_alone_keeps_nobody_out(tmp_path: Path) -> None:
    (tmp_path / NOTE).write_text("elsewhere 1 1999\n")
    with FolderLock(tmp_path):
        assert str(os.getpid()) in (tmp_path / NOTE).read_text()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match="cannot be used"):
        FolderLock(tmp_path / "file")
