"""Makes the small world importable from the tests beside it, and one for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from helpers.small_world import write_world

    return write_world(tmp_path_factory.mktemp("world"))
