"""The page of results on film says what was measured, and every figure of the pages is drawn from its table."""

from __future__ import annotations

import re

import pytest
from studies.figures import FIGURES, Figure, draw, draw_points
from studies.film_stability import CLASSIFIERS, SUBJECTS, TABLES, fill_page, read_results, shares
from studies.harness import RESULT_PAGES

PAGE = (RESULT_PAGES / "on-film.md").read_text(encoding="utf-8")


def test_tables_of_the_page_are_those_of_the_record() -> None:
    assert sorted(re.findall(r"<!-- film: (\w+) -->", PAGE)) == sorted(TABLES)
    assert fill_page(PAGE, read_results()) == PAGE


def test_every_classifier_was_measured_once_on_the_same_anchors() -> None:
    records = read_results()
    assert sorted(record["run"]["network"] for record in records) == sorted(CLASSIFIERS)
    anchors = [[anchor for anchor, _, _ in record["anchors"]] for record in records]
    assert all(one == anchors[0] for one in anchors)
    assert {anchor.rpartition("/")[0] for anchor in anchors[0]} == set(SUBJECTS)
    assert f"{len(anchors[0])} in all" in PAGE


def test_no_classifier_is_more_stable_than_accurate() -> None:
    assert all(shares(record)[1] <= shares(record)[0] for record in read_results())


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.page)
def test_figures_are_drawn_from_the_tables_of_their_pages(figure: Figure) -> None:
    assert (RESULT_PAGES / figure.file).read_text(encoding="utf-8") == draw(figure)
    assert f"]({figure.file})" in (RESULT_PAGES / f"{figure.page}.md").read_text(encoding="utf-8")


def test_a_figure_has_a_dot_and_an_interval_for_each_row() -> None:
    drawing = draw_points([("a < b", 10, 5, 20), ("c", 90, 80, 95)], "share, %")
    assert drawing.count("<circle") == drawing.count('class="reach"') == 2
    assert "a &lt; b" in drawing
