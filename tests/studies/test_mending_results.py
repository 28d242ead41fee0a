"""The page of results about mending agrees with the records and with the shipped inspector."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict

import pytest
from studies.detection import PUPPETS_C
from studies.feature_states import AS_IS, KNOWN, MENDED, WAYS
from studies.harness import RESULT_PAGES, Results
from studies.mending import ALONE, BLANK, DETECTORS, EVERY, GROUPS, UNSEEN, study, without
from studies.mending_frames import study as frame_study
from studies.mending_tables import TABLES, runs_of, with_rule
from studies.tables import fill_page

from jostle import load_inspector

# Runs that the page lists as missing, by group of cells, network and training; all others were measured.
MISSING = {("main", 1, "clean"): 1, ("main", 1, "drop"): 4, ("main", 1, "drop + TRC"): 12}
MISSING |= {("lengths", 0, "clean"): 3, ("unseen", 0, "clean"): 2}
BEFORE_THE_RULE = ("lengths",)


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def test_tables_of_the_page_match_the_records(results: Results) -> None:
    page = (RESULT_PAGES / "mending.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- mending: (\w+) -->", page)) == sorted(TABLES)
    assert fill_page(page, results) == page


def test_every_run_except_the_listed_ones_was_measured_in_every_cell(
    results: Results,
) -> None:
    measured = Counter(tuple(record["run"].values()) for record in results.mending)
    planned = Counter(tuple(asdict(run).values()) for group in EVERY for run in study(group))
    assert measured <= planned
    missing = Counter((group, network, treatment) for _, treatment, _, network, group in planned - measured)
    assert missing == MISSING
    assert {record["films"] for record in results.mending} == {60}
    for record in results.mending:
        if record["run"]["group"] != UNSEEN:
            cells = {"clean", *(cell.name for cell in GROUPS[record["run"]["group"]])}
            assert {way: set(scores) for way, scores in record["scores"].items()} == dict.fromkeys(WAYS, cells)


def test_detectors_of_frames_were_run_on_all_films_in_every_cell(results: Results) -> None:
    assert [record["run"] for record in results.mending_frames] == [asdict(run) for run in frame_study()]
    assert {record["films"] for record in results.mending_frames} == {60}
    assert all(set(record["scores"]) == {"clean", *PUPPETS_C} for record in results.mending_frames)


def test_the_size_of_the_recognition_sample_matches_the_page(results: Results) -> None:
    (recogniser, detections) = results.mending_recognition
    assert (recogniser["clips"], recogniser["run"]["recogniser"]) == (160, "puppet_c3d")
    assert all(list(scores) == list(detections["found"]) for scores in recogniser["scores"].values())


def test_runs_used_the_shipped_inspector_with_the_listed_exceptions(results: Results) -> None:
    inspector = load_inspector()
    with_rules = inspector.fingerprint
    inspector.rules = False
    measured = {(record["run"]["group"], record["inspector"]) for record in results.mending if "inspector" in record}
    alone = inspector.fingerprint
    assert measured == {
        (group, alone if group in BEFORE_THE_RULE else with_rules) for group in EVERY if group != UNSEEN
    }
    assert {record["inspector"] for record in results.mending_frames if record["run"]["way"] == MENDED} == {with_rules}


def test_all_inspectors_were_trained_for_the_same_number_of_steps(results: Results) -> None:
    records = results.mending + results.mending_shipped
    steps = {count for record in records for count in record.get("inspectors", {}).values()}
    assert len(steps) == 1


def test_the_rule_and_the_network_alone_were_measured_on_all_films(results: Results) -> None:
    for group in ("lengths", UNSEEN):
        assert [record["run"]["detector"] for record in with_rule(results, group)] == list(DETECTORS)
    assert {record["films"] for record in results.mending_shipped} == {60}
    for record in with_rule(results, UNSEEN):
        alone, both = (record["found"][without(BLANK) + how] for how in (ALONE, ""))
        assert all(both[cell][0] >= counts[0] for cell, counts in alone.items())  # the rule only adds detections


def test_known_damage_does_not_change_clean_scores(results: Results) -> None:
    """Clean video has no damaged frames, so the oracle changes nothing."""
    for record in results.mending:
        if AS_IS in record["scores"]:
            assert record["scores"][KNOWN]["clean"] == record["scores"][AS_IS]["clean"]


def test_a_changed_record_changes_the_page(results: Results) -> None:
    page = "<!-- mending: main -->\nold\n<!-- end -->"
    once = fill_page(page, results)
    scores = runs_of(results, "main")[0]["scores"][MENDED]
    scores["clean"] += 0.1
    try:
        assert fill_page(page, results) != once
    finally:
        scores["clean"] -= 0.1
