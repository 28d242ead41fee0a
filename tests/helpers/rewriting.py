"""Work on source files at the start of a session, done once for all its workers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion import rewrite


def rewrite_tests_only() -> None:
    """Leave packages with plugins of pytest as they are: jostle itself, Hypothesis and others.

    pytest would rewrite the assertions of all their modules, for messages that nobody reads, in each worker of a fresh
    clone.
    """
    for hook in sys.meta_path:
        if isinstance(hook, rewrite.AssertionRewritingHook):
            hook._must_rewrite.clear()
            hook._marked_for_rewrite_cache.clear()


def rewrite_share(folder: Path, config: pytest.Config) -> None:
    """Rewrite the assertions of this worker's share of the test files and store them for the others.

    pytest stores what it rewrites, but on a fresh clone all workers come to the same file at the same time, and each
    would rewrite it: a quarter of a minute in each of them.
    """
    for file in _share(sorted(folder.rglob("test_*.py"))):
        stored = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if not stored.exists() and rewrite.try_makedirs(stored.parent):
            digest, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, stored)


def parse_share(folder: Path) -> None:
    """Have Hypothesis parse this worker's share of the sources and store their constants, which all workers draw."""
    from hypothesis.internal.constants_ast import constants_from_module  # after `rewrite_tests_only`

    for file in _share(sorted(folder.rglob("*.py"))):
        module = ModuleType(file.stem)
        module.__file__ = str(file)
        constants_from_module(module)


def _share(files: list[Path]) -> list[Path]:
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    return files[worker :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]
