"""Makes the small world importable from the tests beside it, and one for all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)

if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from small_world import write_world

    return write_world(tmp_path_factory.mktemp("world"))
