"""Short videos that tests read and never change, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.small_run import write_videos


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_videos(tmp_path_factory.mktemp("videos"))
