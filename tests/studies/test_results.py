"""The page of results about detectors agrees with the records."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from studies.detection import study_runs
from studies.detection_tables import TABLES
from studies.harness import RESULT_PAGES, Results
from studies.tables import fill_page


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def test_tables_of_the_page_match_the_records(results: Results) -> None:
    page = (RESULT_PAGES / "detectors.md").read_text(encoding="utf-8")
    assert fill_page(page, results) == page


def test_every_table_is_on_the_page() -> None:
    named = re.findall(r"<!-- table: (\w+) -->", (RESULT_PAGES / "detectors.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(TABLES)


def test_every_run_of_the_study_was_measured_once(results: Results) -> None:
    measured = [tuple(record["run"].values()) for record in results.results]
    assert sorted(measured) == sorted(tuple(asdict(run).values()) for run in study_runs())


def test_a_changed_record_changes_the_page(results: Results) -> None:
    page = "<!-- table: main -->\nold\n<!-- end -->"
    once = fill_page(page, results)
    results.results[0]["cells"]["clean"][2] += 0.1
    try:
        assert fill_page(page, results) != once
    finally:
        results.results[0]["cells"]["clean"][2] -= 0.1
