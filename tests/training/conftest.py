"""Shared fixture: a small dataset of features, generated once per session."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from helpers.small_world import write_world

    return write_world(tmp_path_factory.mktemp("world"))
