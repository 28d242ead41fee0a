"""The page of results about frame detectors agrees with the records."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from studies.detection import PUPPETS_C
from studies.detection_tables import END_TO_END_TABLES
from studies.end_to_end import study_runs
from studies.harness import RESULT_PAGES, Results
from studies.tables import fill_page


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def test_tables_of_the_page_match_the_records(results: Results) -> None:
    page = (RESULT_PAGES / "end-to-end-detectors.md").read_text(encoding="utf-8")
    assert fill_page(page, results) == page


def test_every_table_is_on_the_page() -> None:
    named = re.findall(
        r"<!-- end to end: (\w+) -->", (RESULT_PAGES / "end-to-end-detectors.md").read_text(encoding="utf-8")
    )
    assert sorted(named) == sorted(END_TO_END_TABLES)


def test_every_run_of_the_study_was_measured_once_in_every_cell(results: Results) -> None:
    measured = [tuple(record["run"].values()) for record in results.end_to_end]
    assert sorted(measured) == sorted(tuple(asdict(run).values()) for run in study_runs())
    assert all(tuple(record["cells"]) == ("clean", *PUPPETS_C) for record in results.end_to_end)


def test_a_changed_record_changes_the_page(results: Results) -> None:
    page = "<!-- end to end: main -->\nold\n<!-- end -->"
    once = fill_page(page, results)
    cell = results.of("end_to_end", detector="afsd", treatment="clean")[0]["cells"]["clean"]
    cell[2] += 0.1
    try:
        assert fill_page(page, results) != once
    finally:
        cell[2] -= 0.1
