"""The leaderboard in a real browser: sorting by mouse and keyboard, links, contrast, narrow windows, no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.synthetic_runs import write_run


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    write_run(folder / "weak", benchmark="thumos14-c", model="weak_one")
    write_run(folder / "firm", benchmark="thumos14-c", weakness=0.3, model="firm_one")
    write_run(folder / "part", benchmark="thumos14-c", weakness=0.1, model="part_one", fails=("video_0003",))
    return jostle.board([folder / name for name in ("weak", "firm", "part")], folder / "out", draws=40)


@pytest.fixture
def page(open_page: Any, board: Path) -> Any:
    return open_page(board.as_uri(), "file:").page


def rows(page: Any, table: str) -> list[str]:
    return [text.split("\n")[0] for text in page.locator(f"{table} tbody th").all_inner_texts()]


def test_tables_are_sorted_by_mouse_and_keyboard(page: Any, board: Path) -> None:
    page.get_by_role("link", name="THUMOS14-C").click()
    assert rows(page, "#measured") == ["firm_one", "weak_one", "part_one"]
    heading = page.locator("#measured th", has_text="corrupted, mean")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert rows(page, "#measured") == ["part_one", "firm_one", "weak_one"]
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert rows(page, "#measured") == ["weak_one", "firm_one", "part_one"]
    page.locator("#measured th", has_text="model").first.get_by_role("button").click()
    assert rows(page, "#measured") == ["firm_one", "part_one", "weak_one"]
    assert heading.get_attribute("aria-sort") is None


def test_missing_values_are_sorted_last(page: Any, board: Path) -> None:
    page.goto((board.parent / "thumos14-c.html").as_uri())
    button = page.locator("#published th", has_text="black frame").get_by_role("button")
    for _ in range(2):
        button.click()
        cells = page.locator("#published tbody td.heat:nth-of-type(4)").all_inner_texts()
        assert len(cells) == 15
        assert all(cells[:8])
        assert not any(cells[8:])


def test_details_of_a_row_open(page: Any, board: Path) -> None:
    page.goto((board.parent / "thumos14-c.html").as_uri())
    article = page.locator("#group-0-1")
    assert not article.is_visible()
    page.locator("#measured tbody tr").first.get_by_role("link", name="how it was made").click()
    article.wait_for(state="visible")
    assert "12 of 12 videos, 4 of 4 cells" in article.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_contrast_and_width(open_page: Any, board: Path, scheme: str, width: int) -> None:
    for name in ("index.html", "thumos14-c.html"):
        address = (board.parent / name).as_uri()
        visit = open_page(address, "file:", color_scheme=scheme, viewport={"width": width, "height": 800})
        visit.check_contrast()
        visit.check_width()
