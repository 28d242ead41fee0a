"""Location of the cache folder: set by the user, or the default of the system."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.core.environment import cache_folder


def test_precedence_of_environment_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/caches")
    monkeypatch.setenv("JOSTLE_CACHE", "~/own")
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("JOSTLE_CACHE", "")
    assert cache_folder() == Path("/var/tmp/caches/jostle")
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")  # relative, so ignored
    assert cache_folder() == tmp_path / ".cache" / "jostle"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "jostle"
