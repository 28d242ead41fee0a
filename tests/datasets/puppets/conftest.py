"""Shared fixtures: one cache for all tests that need drawn videos, so that each is drawn once."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder for generated data sets."""
    return tmp_path_factory.mktemp("root")
