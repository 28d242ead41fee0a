"""Folder locks: one owner at a time, and none after a kill."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jostle.errors import DataError, ResourceError
from jostle.io.files.lock import NOTE, FolderLock


def test_a_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "new" / "folder"), pytest.raises(ResourceError, match=f"process {os.getpid()} on"):
        FolderLock(tmp_path / "new" / "folder")
    with FolderLock(tmp_path / "new" / "folder"):
        assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [NOTE]
    assert not list((tmp_path / "new" / "folder").iterdir())


def test_a_stale_owner_file_does_not_lock(tmp_path: Path) -> None:
    (tmp_path / NOTE).write_text("elsewhere 1 1999\n")
    with FolderLock(tmp_path):
        assert str(os.getpid()) in (tmp_path / NOTE).read_text()


def test_a_file_cannot_be_locked_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match="cannot be used"):
        FolderLock(tmp_path / "file")
