"""The cache lies where the user says, or where the system keeps such things."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.core.environment import cache_folder


def test_the_first_that_is_set_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/caches")
    monkeypatch.setenv("JOSTLE_CACHE", "~/own")
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("JOSTLE_CACHE", "")
    assert cache_folder() == Path("/var/tmp/caches/jostle")
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")  # relative, so of no account
    assert cache_folder() == tmp_path / ".cache" / "jostle"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "jostle"
