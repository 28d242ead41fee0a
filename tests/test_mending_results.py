"""The part of the page of results about mending says what was measured."""

from __future__ import annotations

import re

from experiments.mending_tables import PAGE, TABLES, filled, read_records


def test_tables_of_the_page_are_those_of_the_records() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- mending: (\w+) -->", page)) == sorted(TABLES)
    assert filled(page, read_records()) == page


def test_a_changed_record_shows() -> None:
    page, rows = "<!-- mending: main -->\nold\n<!-- end -->", read_records()
    once = filled(page, rows)
    next(row for row in rows if row["study"] == "main")["relative"][0] -= 0.1
    assert filled(page, rows) != once


def test_clean_features_are_the_same_where_frames_are_known() -> None:
    """Nothing is struck in clean video, so to know it changes nothing."""
    rows = [row for row in read_records() if row["study"] == "main"]
    clean = {(row["run"]["detector"], row["run"]["weights"], row["run"]["way"]): row["clean"][0] for row in rows}
    for (detector, weights, way), value in clean.items():
        if way == "known":
            assert value == clean[detector, weights, "as is"]
