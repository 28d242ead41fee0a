"""The page of results about questions agrees with the records."""

from __future__ import annotations

import re

from studies.harness import RESULT_PAGES, Results
from studies.questions import (
    DISORDERED,
    GROUPS,
    RUNS,
    SHIPPED,
    TABLES,
    TREATMENTS,
    answers_of,
    find,
    questions_of,
    score_of,
)
from studies.tables import fill_page

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.answers import temporal_sensitivity


def test_tables_of_the_page_match_the_record() -> None:
    page = (RESULT_PAGES / "questions.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- questions: (\w+) -->", page)) == sorted(TABLES)
    assert fill_page(page, Results()) == page


def test_every_model_answered_every_question_in_every_cell() -> None:
    records = Results().questions
    for cells, mend in (("placed", ""), ("pictures", ""), ("placed", "jostle")):
        for weights in TREATMENTS:
            record = find(records, weights, mend, cells)
            expected = {name for name, group in GROUPS.items() if group in RUNS[cells]}
            assert set(record["choices"]) == {CLEAN, "blind", "one_frame"} | expected
            assert {len(digits) for digits in record["choices"].values()} == {len(record["questions"])}
    for weights in TREATMENTS:  # repeated runs gave the same answers
        first, second = (find(records, weights, cells=cells)["choices"] for cells in RUNS)
        assert all(first[cell] == second[cell] for cell in (CLEAN, "blind", "one_frame"))


def test_shipped_models_are_25_points_above_the_blind_baseline_on_the_test_part() -> None:
    records = Results().questions
    for weights in SHIPPED:
        record = find(records, weights)
        assert len(record["questions"]) == 389
        assert score_of(record, CLEAN).accuracy >= score_of(record, "blind").accuracy + 0.25


def test_temporal_sensitivity_separates_the_model_trained_on_shuffled_frames() -> None:
    records = Results().questions
    for cell in DISORDERED:
        intervals = {}
        for weights in TREATMENTS:
            record = find(records, weights)
            sensitivity = temporal_sensitivity(
                answers_of(record, CLEAN), answers_of(record, cell), questions_of(record)
            )
            assert sensitivity.interval is not None
            intervals[weights] = sensitivity.interval
        assert all(intervals[weights][0] > intervals["shuffled"][1] for weights in SHIPPED)
