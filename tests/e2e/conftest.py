"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers import started


@pytest.fixture(scope="session", autouse=True)
def no_starter_is_left() -> Iterator[None]:
    """Whoever starts commands for the tests of this process ends with them."""
    yield
    started.close()
