"""What the tests of the command line share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import started


@pytest.fixture(scope="session", autouse=True)
def no_starter_is_left() -> Iterator[None]:
    """Whoever starts commands for the tests of this process ends with them."""
    yield
    started.close()
