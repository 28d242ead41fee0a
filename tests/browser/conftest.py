"""A real browser and pages that are open in it; its tests are skipped without playwright or chromium."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

PROBES = (Path(__file__).parent / "probes.js").read_text(encoding="utf-8")
WIDE = {"width": 1200, "height": 900}
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium from $CHROMIUM, from the system, or as installed by `playwright install`.

    One per module: playwright runs an event loop, beside which tests of other packages could not start their own.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_api.sync_playwright() as playwright:
        path = path or playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("there is no chromium: apt-get install chromium, or name one by CHROMIUM")
        launched = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield launched
        launched.close()


@dataclass
class Visit:
    """An open page with its errors and its responses."""

    page: Any
    origin: str = ""
    errors: list[str] = field(default_factory=list)
    responses: list[tuple[str, int]] = field(default_factory=list)

    def open(self, path: str, selector: str = "h1") -> None:
        self.page.goto(self.origin + path)
        self.page.wait_for_selector(selector)

    def probe(self, name: str, on: Any = None) -> Any:
        """Call a function of probes.js on an element or on the page."""
        return self.page.evaluate(f"(node) => {PROBES.strip()}.{name}(node)", on)

    @property
    def query(self) -> dict[str, list[str]]:
        """Return the parameters of the URL."""
        return parse_qs(self.page.evaluate("location.search.slice(1)"))

    def until(self, condition: str | Callable[[], Any], within_s: float = 30.0) -> Any:
        """Wait for a script expression or a predicate; playwright's own way violates the policy of the pages."""
        end = time.monotonic() + within_s
        while not (value := condition() if callable(condition) else self.page.evaluate(condition)):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.03)
        return value

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def check_contrast(self) -> None:
        """Text has a contrast of at least 4.5 to 1, as WCAG requires."""
        ratio, where = self.probe("contrast")
        assert ratio >= 4.5, f"{self.page.url}: {where}"

    def check_width(self) -> None:
        """The page scrolls vertically only."""
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), self.page.url

    def check_headings(self) -> None:
        """One heading is the page's, and none leaves out a level."""
        levels = self.probe("headings")
        assert (levels[0], levels.count(1)) == (1, 1)
        assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Return a function that opens a page, which may have no errors and load nothing but what it is allowed to."""
    visits: list[Visit] = []

    def start(address: str, *allowed: str, origin: str = "", **options: Any) -> Visit:
        context = browser.new_context(**{"viewport": WIDE} | options)
        visit = Visit(context.new_page(), origin)
        visits.append(visit)
        visit.page.on("console", lambda message: visit.errors.append(message.text))
        visit.page.on("pageerror", lambda error: visit.errors.append(str(error)))
        visit.page.on("dialog", lambda dialog: visit.errors.append(f"dialog {dialog.message}"))
        visit.page.on("response", lambda response: visit.responses.append((response.url, response.status)))
        context.on("request", lambda request: request.url.startswith(allowed) or visit.errors.append(request.url))
        visit.page.goto(address)
        return visit

    yield start
    for visit in visits:
        visit.page.context.close()
    assert [visit.errors for visit in visits if visit.errors] == []
