"""The page of results about the inspector agrees with the records and with the shipped weights."""

from __future__ import annotations

import re

from studies.harness import RESULT_PAGES, Results
from studies.inspector_tables import KINDS, TABLES
from studies.tables import fill_page

from jostle import load_inspector


def test_tables_of_the_page_match_the_record() -> None:
    page = (RESULT_PAGES / "inspector.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- inspector: (\w+) -->", page)) == sorted(TABLES)
    assert fill_page(page, Results()) == page


def test_the_record_is_of_the_shipped_weights() -> None:
    fingerprints = {row["fingerprint"] for row in Results().inspector if "fingerprint" in row}
    assert fingerprints == {load_inspector().fingerprint}


def test_every_kind_was_measured_on_both_sets_of_films() -> None:
    tried = {
        (row["side"], row["set"], kind)
        for row in Results().inspector
        if "film" in row
        for kind in row["found"]
        if kind in KINDS
    }
    assert len(tried) == 2 * 2 * len(KINDS)
