"""A real browser, where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium, the one that CHROMIUM names, or the one that `playwright install` put there.

    One for each module: playwright keeps an event loop going, beside which tests of other rooms could start none.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_api.sync_playwright() as started:
        path = path or started.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("there is no chromium: apt-get install chromium, or name one by CHROMIUM")
        opened = started.chromium.launch(executable_path=path, args=list(QUIET))
        yield opened
        opened.close()
