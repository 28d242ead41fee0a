"""The report in a real browser: from disk, offline, in light and dark mode, by mouse and keyboard."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.numpy_extractor import write_video
from helpers.synthetic_runs import HOSTILE, write_run

pytestmark = pytest.mark.slow

WIDE, PHONE = (1240, 900), (390, 800)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    film = write_video(folder / "film.mkv", 580)
    write_run(folder / "one", source=film)
    write_run(folder / "two", source=film, weakness=0.3, model="firmer")
    return jostle.report([folder / "one", folder / "two"], folder / "report.html", draws=50)


class OpenPage:
    """An open page with its errors and its requests."""

    def __init__(self, browser: Any, path: Path, size: tuple[int, int] = WIDE, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, offline=True, **options)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))
        self.page.goto(path.as_uri())


def wait_for(ready: Callable[[], bool], limit_s: float = 10) -> None:
    """Poll a condition from outside, as the policy of the page allows no injected script."""
    until = time.monotonic() + limit_s
    while not ready():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    open_pages: list[OpenPage] = []

    def start(*arguments: Any, **options: Any) -> OpenPage:
        open_pages.append(OpenPage(browser, *arguments, **options))
        return open_pages[-1]

    yield start
    for open_page in open_pages:
        open_page.context.close()
        assert open_page.errors == []
        assert all(address.startswith(("file:", "data:", "blob:")) for address in open_page.requests)


def test_report_opens_from_disk_offline(visit: Any, report: Path) -> None:
    page = visit(report).page
    assert page.title() == "made-detection: guesser, firmer"
    assert page.locator("h1").inner_text() == "guesser and firmer"
    loaded = page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert loaded
    assert page.evaluate("document.images.length") > 0
    clip = page.locator("details:has(video)").first
    clip.locator("summary").click()
    wait_for(lambda: page.evaluate("document.querySelector('details[open] video').readyState >= 1"))


def test_squares_open_details_by_mouse_and_keyboard(visit: Any, report: Path) -> None:
    page = visit(report).page
    details = page.locator(".detail:visible")
    assert details.count() == 0
    page.locator("#figure-map-0 svg a").nth(1).click()
    wait_for(lambda: details.count() == 1)
    assert "black frame:3, guesser" in details.first.inner_text()
    wait_for(lambda: page.evaluate("document.activeElement.id") == "r0c1")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**#r0c2")
    wait_for(lambda: "motion blur:1" in details.first.inner_text())
    page.keyboard.press("Escape")
    page.wait_for_url("**#figure-map-0")
    wait_for(lambda: details.count() == 0)
    page.locator("#figure-map-1 svg a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**#r1c0")
    wait_for(lambda: details.count() == 1)


def test_tables_are_copied_to_the_clipboard(visit: Any, report: Path) -> None:
    opened = visit(report, permissions=["clipboard-read", "clipboard-write"])
    page = opened.page
    table = page.locator("#runs .table")
    for name, start in (("CSV", ",guesser (%)"), ("Markdown", "|  | guesser |"), ("LaTeX", r"\begin{tabular}{lrrrr}")):
        table.get_by_role("button", name=name).click()
        wait_for(lambda name=name: page.locator("#status").inner_text() == f"Copied as {name}")
        assert page.evaluate("navigator.clipboard.readText()").startswith(start)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_saved_in_light_colours(visit: Any, report: Path, tmp_path: Path, scheme: str) -> None:
    page = visit(report, color_scheme=scheme, accept_downloads=True).page
    tools = page.locator("#figure-severity .tools")
    with page.expect_download() as download:
        tools.get_by_role("button", name="SVG").click()
    assert download.value.suggested_filename == "severity.svg"
    download.value.save_as(tmp_path / "saved.svg")
    text = (tmp_path / "saved.svg").read_text()
    assert "rgb(0, 114, 178)" in text  # the blue of light mode
    assert "var(" not in text
    with page.expect_download() as download:
        tools.get_by_role("button", name="PNG").click()
    download.value.save_as(tmp_path / "saved.png")
    assert (tmp_path / "saved.png").read_bytes()[:4] == b"\x89PNG"


def test_dark_and_light_have_contrast(visit: Any, report: Path) -> None:
    """The contrast of text is at least 4.5 to 1, as WCAG requires."""
    for scheme in ("light", "dark"):
        page = visit(report, color_scheme=scheme).page
        background, low_contrast = page.evaluate(CONTRAST)
        assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 22, 26)")
        assert low_contrast == []


def test_phone_scrolls_vertically_only(visit: Any, report: Path) -> None:
    page = visit(report, PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#figure-map-0 svg a").first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_headings_labels_and_keyboard_navigation(visit: Any, report: Path) -> None:
    page = visit(report).page
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(one => Number(one.tagName[1]))")
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.evaluate("[...document.images].every(one => one.alt)")
    assert page.evaluate("[...document.querySelectorAll('svg')].every(one => one.getAttribute('aria-label'))")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"A", "a", "BUTTON"} <= reached  # links of the page, squares of the map, tools


def test_untrusted_text_is_not_executed(visit: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", classes=HOSTILE, model=HOSTILE[3])
    page = visit(jostle.report([tmp_path / "run"], tmp_path / "r.html", draws=10)).page
    assert page.locator("h1").inner_text() == HOSTILE[3]
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.images.length") == 0


def test_report_is_printable(visit: Any, report: Path) -> None:
    page = visit(report).page
    assert page.pdf(format="A4")[:4] == b"%PDF"
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator(".tools").first.is_visible()


CONTRAST = """() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
      .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!colour.endsWith(', 0)') && colour !== 'transparent') return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const low = [];
  const check = (one, ink, paper) => {
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${one.textContent.trim().slice(0, 20)}: ${ink} on ${paper}`);
  };
  const words = 'p, h1, h2, h3, dt, dd, th, td, button, summary, nav a, figcaption, .shot span';
  for (const one of document.querySelectorAll(words))
    if (one.offsetParent && one.id !== 'status') check(one, getComputedStyle(one).color, ground(one));
  for (const one of document.querySelectorAll('svg a text'))
    check(one, getComputedStyle(one).fill, getComputedStyle(one.previousElementSibling).fill);
  return [getComputedStyle(document.body).backgroundColor, [...new Set(low)]];
}"""
