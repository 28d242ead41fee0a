"""The part of the page of results about mending says what was measured, with the inspector that is shipped."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict

import pytest
from studies.detection import PUPPETS_C
from studies.feature_states import AS_IS, KNOWN, MENDED, WAYS
from studies.harness import RESULT_PAGES, Results
from studies.mending import DETECTORS, EVERY, study
from studies.mending_cells import ALONE, BLANK, GROUPS, UNSEEN, without
from studies.mending_frames import study as frame_study
from studies.mending_tables import TABLES, runs_of, with_rule
from studies.tables import fill_page

from jostle import load_inspector

# Runs that the page says were not reached, by group of cells, network and training; all others were.
LACKING = {("main", 1, "clean"): 1, ("main", 1, "drop"): 4, ("main", 1, "drop + TRC"): 12}
LACKING |= {("lengths", 0, "clean"): 3, ("unseen", 0, "clean"): 2}
BEFORE_THE_RULE = ("lengths",)


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def test_tables_of_the_page_are_those_of_the_records(results: Results) -> None:
    page = (RESULT_PAGES / "mending.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- mending: (\w+) -->", page)) == sorted(TABLES)
    assert fill_page(page, results) == page


def test_every_run_but_those_that_the_page_tells_of_was_measured_once_on_all_films_in_every_cell(
    results: Results,
) -> None:
    measured = Counter(tuple(record["run"].values()) for record in results.mending)
    asked = Counter(tuple(asdict(run).values()) for group in EVERY for run in study(group))
    assert measured <= asked
    lacking = Counter((group, network, treatment) for _, treatment, _, network, group in asked - measured)
    assert lacking == LACKING
    assert {record["films"] for record in results.mending} == {60}
    for record in results.mending:
        if record["run"]["group"] != UNSEEN:
            known = {"clean", *(cell.name for cell in GROUPS[record["run"]["group"]])}
            assert {way: set(scores) for way, scores in record["scores"].items()} == dict.fromkeys(WAYS, known)


def test_detectors_of_frames_were_run_on_all_films_in_every_cell(results: Results) -> None:
    assert [record["run"] for record in results.mending_frames] == [asdict(run) for run in frame_study()]
    assert {record["films"] for record in results.mending_frames} == {60}
    assert all(set(record["scores"]) == {"clean", *PUPPETS_C} for record in results.mending_frames)


def test_the_sample_of_recognition_is_as_large_as_the_page_says(results: Results) -> None:
    (recogniser, found) = results.mending_recognition
    assert (recogniser["clips"], recogniser["run"]["recogniser"]) == (160, "puppet_c3d")
    assert all(list(scores) == list(found["found"]) for scores in recogniser["scores"].values())


def test_mended_was_by_the_shipped_inspector_with_its_rule_but_where_the_page_says_otherwise(results: Results) -> None:
    inspector = load_inspector()
    with_rules = inspector.fingerprint
    inspector.rules = False
    told = {(record["run"]["group"], record["inspector"]) for record in results.mending if "inspector" in record}
    alone = inspector.fingerprint
    assert told == {(group, alone if group in BEFORE_THE_RULE else with_rules) for group in EVERY if group != UNSEEN}
    assert {record["inspector"] for record in results.mending_frames if record["run"]["way"] == MENDED} == {with_rules}


def test_inspectors_that_lack_a_kind_and_the_one_that_has_all_learned_for_as_many_steps(results: Results) -> None:
    records = results.mending + results.mending_shipped
    steps = {many for record in records for many in record.get("inspectors", {}).values()}
    assert len(steps) == 1


def test_the_rule_was_measured_beside_the_network_alone_on_all_films(results: Results) -> None:
    for group in ("lengths", UNSEEN):
        assert [record["run"]["detector"] for record in with_rule(results, group)] == list(DETECTORS)
    assert {record["films"] for record in results.mending_shipped} == {60}
    for record in with_rule(results, UNSEEN):
        alone, both = (record["found"][without(BLANK) + how] for how in (ALONE, ""))
        assert all(both[cell][0] >= found[0] for cell, found in alone.items())  # it only adds to what the network found


def test_clean_features_are_the_same_where_frames_are_known(results: Results) -> None:
    """Nothing is struck in clean video, so to know it changes nothing."""
    for record in results.mending:
        if AS_IS in record["scores"]:
            assert record["scores"][KNOWN]["clean"] == record["scores"][AS_IS]["clean"]


def test_a_changed_record_shows(results: Results) -> None:
    page = "<!-- mending: main -->\nold\n<!-- end -->"
    once = fill_page(page, results)
    scores = runs_of(results, "main")[0]["scores"][MENDED]
    scores["clean"] += 0.1
    try:
        assert fill_page(page, results) != once
    finally:
        scores["clean"] -= 0.1
