"""Fixtures of the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers import started


@pytest.fixture(scope="session", autouse=True)
def stop_starter() -> Iterator[None]:
    """Stop the process that starts commands for the tests, at the end of the session."""
    yield
    started.close()
