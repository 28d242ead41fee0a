"""The pages of results about recognisers agree with the records."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from studies.harness import RESULT_PAGES, Results
from studies.recognition import CELLS, SHIPPED, SHIPPED_RECOGNISERS, single_runs, study_runs
from studies.recognition_tables import TABLES
from studies.tables import fill_page

from jostle.models.weights.shipped import shipped_names, weights_file
from studies import frames

PAGES = [(RESULT_PAGES / f"{name}.md").read_text(encoding="utf-8") for name in ("recognisers", "frame-classifiers")]


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def test_tables_of_the_pages_match_the_records(results: Results) -> None:
    for page in PAGES:
        assert fill_page(page, results) == page


def test_every_table_is_on_the_page() -> None:
    named = re.findall(r"<!-- recognition: (\w+) -->", "".join(PAGES))
    assert sorted(named) == sorted(TABLES)


def test_every_run_of_the_study_was_measured_once_in_every_cell(results: Results) -> None:
    runs = [*study_runs(), *single_runs()]
    measured = [tuple(record["run"].values()) for record in results.recognition]
    assert sorted(measured) == sorted(tuple(asdict(run).values()) for run in runs)
    assert all(tuple(record["cells"]) == CELLS for record in results.recognition)


def test_every_run_on_frames_was_measured_once(results: Results) -> None:
    runs = [(frames.START, 0), *((treatment, seed) for treatment in frames.TREATMENTS for seed in frames.SEEDS)]
    assert sorted(tuple(record["run"].values()) for record in results.frames) == sorted(runs)


def test_a_changed_record_changes_the_page(results: Results) -> None:
    page = "<!-- recognition: main -->\nold\n<!-- end -->"
    once = fill_page(page, results)
    cell = results.of("recognition", recogniser="puppet_c3d", treatment="clean")[0]["cells"]["clean"]
    cell[0] += 0.1
    try:
        assert fill_page(page, results) != once
    finally:
        cell[0] -= 0.1


def test_bundled_recognisers_are_smaller_than_eight_megabytes() -> None:
    names = [f"{recogniser}-{name}" for recogniser in (*SHIPPED_RECOGNISERS, frames.CLASSIFIER) for name in SHIPPED]
    assert set(names) <= set(shipped_names())
    assert sum(weights_file(name).stat().st_size for name in names) < 8_000_000
