"""The part of the page of results about mending says what was measured, with the inspector that is shipped."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict

import pytest
from experiments.mending import EVERY, study
from experiments.mending_cells import GROUPS, UNSEEN
from experiments.mending_features import AS_IS, KNOWN, MENDED, WAYS
from experiments.mending_tables import TABLES, Results, filled
from experiments.page import PAGE

from jostle import load_inspector

# Runs that the page tells of, by group of cells and training.
MEASURED = {("main", "clean"): 12, ("main", "drop"): 10, ("unseen", "clean"): 10, ("lengths", "clean"): 9}


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def test_tables_of_the_page_are_those_of_the_records(results: Results) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- mending: (\w+) -->", page)) == sorted(TABLES)
    assert filled(page, results) == page


def test_every_run_was_measured_once_on_all_films_in_every_cell(results: Results) -> None:
    measured = [tuple(record["run"].values()) for record in results.records]
    assert len(measured) == len(set(measured))
    assert set(measured) <= {tuple(asdict(run).values()) for group in EVERY for run in study(group)}
    counted = Counter((record["run"]["group"], record["run"]["treatment"]) for record in results.records)
    assert counted == MEASURED
    assert {record["films"] for record in results.records} == {60}
    for record in results.records:
        if record["run"]["group"] != UNSEEN:
            known = {"clean", *(cell.name for cell in GROUPS[record["run"]["group"]])}
            assert {way: set(scores) for way, scores in record["scores"].items()} == dict.fromkeys(WAYS, known)


def test_the_samples_are_as_large_as_the_page_says(results: Results) -> None:
    runs = Counter((record["run"]["group"], record["films"]) for record in results.shipped)
    assert runs == {("background", 8): 2, ("strengths", 8): 2, ("together", 8): 2, ("extra", 9): 4}
    (recogniser, found) = results.recognition
    assert (recogniser["clips"], recogniser["run"]["recogniser"]) == (16, "puppet_c3d")
    assert all(list(scores) == list(found["found"]) for scores in recogniser["scores"].values())


def test_mended_was_by_the_shipped_inspector(results: Results) -> None:
    told = {record["inspector"] for record in results.records + results.shipped if "inspector" in record}
    inspector = load_inspector()
    of_it = {inspector.fingerprint}
    inspector.blank_rule = False  # the network by itself, which is what there was before the rule
    assert told
    assert told <= of_it | {inspector.fingerprint}


def test_inspectors_that_lack_a_kind_and_the_one_that_has_all_learned_for_as_many_steps(results: Results) -> None:
    steps = {many for record in results.records for many in record.get("inspectors", {}).values()}
    assert len(steps) == 1


def test_clean_features_are_the_same_where_frames_are_known(results: Results) -> None:
    """Nothing is struck in clean video, so to know it changes nothing."""
    for record in results.records:
        if AS_IS in record["scores"]:
            assert record["scores"][KNOWN]["clean"] == record["scores"][AS_IS]["clean"]


def test_a_changed_record_shows(results: Results) -> None:
    page = "<!-- mending: main -->\nold\n<!-- end -->"
    once = filled(page, results)
    scores = results.of("main", "clean")[0]["scores"][MENDED]
    scores["clean"] += 0.1
    try:
        assert filled(page, results) != once
    finally:
        scores["clean"] -= 0.1
