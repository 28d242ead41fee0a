"""Assertions of test files, rewritten once for all workers of a session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def rewrite_share(folder: Path, config: pytest.Config) -> None:
    """Rewrite the assertions of this worker's share of the test files and store them for the others.

    pytest stores what it rewrites, but on a fresh clone all workers come to the same file at the same time, and each
    would rewrite it: a quarter of a minute in each of them.
    """
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    for file in sorted(folder.rglob("test_*.py"))[worker :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        stored = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if not stored.exists() and rewrite.try_makedirs(stored.parent):
            digest, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, stored)
