"""The pages of results agree with the records, and their figures with their tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from studies.figures import FIGURES, Figure, draw, draw_points
from studies.harness import RESULT_PAGES, Results
from studies.mending_tables import runs_of
from studies.tables import TABLES, fill_page

RESULTS = Results()
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(RESULT_PAGES.glob("*.md"))}


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_a_page_match_the_records(page: str) -> None:
    assert fill_page(PAGES[page], RESULTS) == PAGES[page]


@pytest.mark.parametrize("study", TABLES)
def test_every_table_of_a_study_is_on_a_page(study: str) -> None:
    assert sorted(re.findall(rf"<!-- {study}: (\w+) -->", "".join(PAGES.values()))) == sorted(TABLES[study])


@pytest.mark.parametrize(
    ("study", "scores_of", "place"),
    [
        ("table", lambda: RESULTS.results[0]["cells"]["clean"], 2),
        ("end to end", lambda: RESULTS.of("end_to_end", detector="afsd", treatment="clean")[0]["cells"]["clean"], 2),
        ("mending", lambda: runs_of(RESULTS, "main")[0]["scores"]["mended"], "clean"),
        (
            "recognition",
            lambda: RESULTS.of("recognition", recogniser="puppet_c3d", treatment="clean")[0]["cells"]["clean"],
            0,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_changed_record_changes_the_page(study: str, scores_of: Callable[[], Any], place: Any) -> None:
    page = f"<!-- {study}: main -->\nold\n<!-- end -->"
    once = fill_page(page, RESULTS)
    scores = scores_of()
    scores[place] += 0.1
    try:
        assert fill_page(page, RESULTS) != once
    finally:
        scores[place] -= 0.1


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.page)
def test_figures_are_drawn_from_the_tables_of_their_pages(figure: Figure) -> None:
    assert (RESULT_PAGES / figure.file).read_text(encoding="utf-8") == draw(figure)
    assert f"]({figure.file})" in PAGES[figure.page]


def test_a_figure_has_a_dot_and_an_interval_for_each_row() -> None:
    drawing = draw_points([("a < b", 10, 5, 20), ("c", 90, 80, 95)], "share, %")
    assert drawing.count("<circle") == drawing.count('class="reach"') == 2
    assert "a &lt; b" in drawing
