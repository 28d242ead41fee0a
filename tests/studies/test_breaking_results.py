"""The page of results about breaking points agrees with the records."""

from __future__ import annotations

import re

from studies.breaking_points import DETECTORS, TABLES, find
from studies.harness import RESULT_PAGES, Results
from studies.tables import fill_page


def test_tables_of_the_page_match_the_record() -> None:
    page = (RESULT_PAGES / "breaking-points.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- breaking: (\w+) -->", page)) == sorted(TABLES)
    assert fill_page(page, Results()) == page


def test_every_detector_was_probed_with_both_weights_on_the_same_items() -> None:
    records = Results().breaking_points
    assert len(records) == 2 * len(DETECTORS) + 1
    for detector in DETECTORS:
        clean, robust = (find(records, detector, weights) for weights in ("clean", "robust"))
        assert clean["items"] == robust["items"]
        assert {point[0] for point in clean["points"]} <= {point[0] for point in records[0]["points"]} | {
            point[0] for point in robust["points"]
        }


def test_detectors_on_film_were_probed_once_on_the_same_videos() -> None:
    records = Results().film_breaking
    assert sorted(record["run"]["detector"] for record in records) == sorted(DETECTORS[:3])
    assert {record["items"] for record in records} == {50}
    assert all(len(record["points"]) == record["kept"] for record in records)
