"""The part of the page of results about the inspector says what was measured, of the weights that are shipped."""

from __future__ import annotations

import re

from studies.harness import RESULT_PAGES, Results
from studies.inspector_tables import KINDS, TABLES
from studies.tables import fill_page

from jostle import load_inspector


def test_tables_of_the_page_are_those_of_the_record() -> None:
    page = (RESULT_PAGES / "inspector.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- inspector: (\w+) -->", page)) == sorted(TABLES)
    assert fill_page(page, Results()) == page


def test_the_record_is_of_the_shipped_weights() -> None:
    told = {row["fingerprint"] for row in Results().inspector if "fingerprint" in row}
    assert told == {load_inspector().fingerprint}


def test_every_kind_was_tried_on_films_of_both_sorts() -> None:
    tried = {
        (row["side"], row["set"], kind)
        for row in Results().inspector
        if "film" in row
        for kind in row["found"]
        if kind in KINDS
    }
    assert len(tried) == 2 * 2 * len(KINDS)
