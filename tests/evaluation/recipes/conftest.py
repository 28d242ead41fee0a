"""Videos to build corrupted copies of."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.small_builds import write_films


@pytest.fixture
def video_root(tmp_path: Path) -> Path:
    return write_films(tmp_path)
