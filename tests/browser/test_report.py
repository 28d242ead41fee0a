"""The report in a real browser: from disk, offline, in light and dark mode, by mouse and keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.numpy_extractor import write_video
from helpers.synthetic_runs import write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    film = write_video(folder / "film.mkv", 580)
    write_run(folder / "one", source=film)
    write_run(folder / "two", source=film, weakness=0.3, model="firmer")
    return jostle.report([folder / "one", folder / "two"], folder / "report.html", draws=50)


@pytest.fixture
def open_report(open_page: Any) -> Any:
    return lambda path, **options: open_page(path.as_uri(), "file:", "data:", "blob:", offline=True, **options)


def test_report_opens_from_disk_offline(open_report: Any, report: Path) -> None:
    visit = open_report(report)
    page = visit.page
    assert page.title() == "made-detection: guesser, firmer"
    assert page.locator("h1").inner_text() == "guesser and firmer"
    loaded = page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert loaded
    assert page.evaluate("document.images.length") > 0
    clip = page.locator("details:has(video)").first
    clip.locator("summary").click()
    visit.until(lambda: page.evaluate("document.querySelector('details[open] video').readyState >= 1"))


def test_squares_open_details_by_mouse_and_keyboard(open_report: Any, report: Path) -> None:
    visit = open_report(report)
    page = visit.page
    details = page.locator(".detail:visible")
    assert details.count() == 0
    page.locator("#figure-map-0 svg a").nth(1).click()
    visit.until(lambda: details.count() == 1)
    assert "black frame:3, guesser" in details.first.inner_text()
    visit.until(lambda: page.evaluate("document.activeElement.id") == "r0c1")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**#r0c2")
    visit.until(lambda: "motion blur:1" in details.first.inner_text())
    page.keyboard.press("Escape")
    page.wait_for_url("**#figure-map-0")
    visit.until(lambda: details.count() == 0)
    page.locator("#figure-map-1 svg a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**#r1c0")
    visit.until(lambda: details.count() == 1)


def test_tables_are_copied_to_the_clipboard(open_report: Any, report: Path) -> None:
    visit = open_report(report, permissions=["clipboard-read", "clipboard-write"])
    page = visit.page
    table = page.locator("#runs .table")
    for name, start in (("CSV", ",guesser (%)"), ("Markdown", "|  | guesser |"), ("LaTeX", r"\begin{tabular}{lrrrr}")):
        table.get_by_role("button", name=name).click()
        visit.until(lambda name=name: page.locator("#status").inner_text() == f"Copied as {name}")
        assert page.evaluate("navigator.clipboard.readText()").startswith(start)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_saved_in_light_colours(open_report: Any, report: Path, tmp_path: Path, scheme: str) -> None:
    page = open_report(report, color_scheme=scheme, accept_downloads=True).page
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


@pytest.mark.parametrize("width", [1240, 390])
@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 22, 26)")])
def test_contrast_and_width(open_report: Any, report: Path, scheme: str, ground: str, width: int) -> None:
    visit = open_report(report, color_scheme=scheme, viewport={"width": width, "height": 800})
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    visit.check_contrast()
    visit.check_width()
    visit.page.locator("#figure-map-0 svg a").first.click()
    visit.check_width()


def test_headings_labels_and_keyboard_navigation(open_report: Any, report: Path) -> None:
    visit = open_report(report)
    page = visit.page
    visit.check_headings()
    assert page.evaluate("[...document.images].every(one => one.alt)")
    assert page.evaluate("[...document.querySelectorAll('svg')].every(one => one.getAttribute('aria-label'))")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"A", "a", "BUTTON"} <= reached  # links of the page, squares of the map, tools


def test_report_is_printable(open_report: Any, report: Path) -> None:
    page = open_report(report).page
    assert page.pdf(format="A4")[:4] == b"%PDF"
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator(".tools").first.is_visible()
