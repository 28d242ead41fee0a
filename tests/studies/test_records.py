"""Records of the studies: every planned run was measured once, and in every cell that the pages compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import pytest
from studies.detection import PUPPETS_C
from studies.feature_states import AS_IS, KNOWN, MENDED, WAYS
from studies.film_stability import SUBJECTS, shares
from studies.harness import RESULT_PAGES, Results
from studies.inspector_tables import KINDS
from studies.mending import ALONE, BLANK, DETECTORS, EVERY, GROUPS, UNSEEN, study, without
from studies.mending_tables import with_rule
from studies.questions import DISORDERED, RUNS, SHIPPED, TREATMENTS, answers_of, find, questions_of, score_of
from studies.watching import OPENED, SYSTEMS

from jostle import load_inspector
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.answers import temporal_sensitivity
from jostle.models.weights.packaged import packaged_names, weights_file
from studies import (
    adaptation,
    breaking_points,
    detection,
    end_to_end,
    film_cuts,
    film_detection,
    film_recognition,
    film_stability,
    film_tables,
    frames,
    mending_frames,
    questions,
    recognition,
    world_damage,
)

RESULTS = Results()
CLIPS = film_tables.ClipAnswers(RESULTS)

# The recognisers that were adapted with a second seed as well.
TWICE = ("as is", "bn, episodic", "bn, online", "sar, online")
PLANNED: dict[str, Iterable[Any]] = {
    "results": detection.study_runs(),
    "end_to_end": end_to_end.study_runs(),
    "recognition": [*recognition.study_runs(), *recognition.single_runs()],
    "frames": frames.study_runs(),
    "questions": questions.study_runs(),
    "film_stability": film_stability.study_runs(),
    "film_recognition": film_recognition.study_runs(),
    "film_detection": film_detection.study_runs(),
    "film_mended": [run for run in film_detection.study_runs() if run.features == "shifted" and run.seed == 0],
    "film_cuts": film_cuts.study_runs(),
    "film_adaptation": [
        *(run for run in adaptation.study_runs("film_recognition") if run.seed == 0),
        *(adaptation.AdaptationRun("clean", way, 1) for way in TWICE),
    ],
}
CELLS = {
    "end_to_end": ("cells", ("clean", *PUPPETS_C)),
    "recognition": ("cells", recognition.CELLS),
    "mending_frames": ("scores", ("clean", *PUPPETS_C)),
}


def count_runs(runs: Iterable[Any]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple((run if isinstance(run, dict) else asdict(run)).values()) for run in runs)


@pytest.mark.parametrize("file", PLANNED)
def test_every_run_was_measured_once(file: str) -> None:
    assert count_runs(record["run"] for record in getattr(RESULTS, file)) == count_runs(PLANNED[file])


@pytest.mark.parametrize("file", CELLS)
def test_every_run_was_measured_in_every_cell(file: str) -> None:
    key, cells = CELLS[file]
    assert all(tuple(record[key]) == cells for record in getattr(RESULTS, file))


@pytest.mark.parametrize("task", adaptation.RECORDS)
def test_adaptation_runs_of_a_task_are_planned_and_unique(task: str) -> None:
    measured = count_runs(record["run"] for record in getattr(RESULTS, adaptation.RECORDS[task]))
    assert measured <= count_runs(adaptation.study_runs(task))


# Breaking points.


def test_every_detector_was_probed_with_both_weights_on_the_same_items() -> None:
    records = RESULTS.breaking_points
    assert len(records) == 2 * len(breaking_points.DETECTORS) + 1
    for detector in breaking_points.DETECTORS:
        clean, robust = (breaking_points.find(records, detector, weights) for weights in ("clean", "robust"))
        assert clean["items"] == robust["items"]
        assert {point[0] for point in clean["points"]} <= {point[0] for point in records[0]["points"]} | {
            point[0] for point in robust["points"]
        }


def test_detectors_on_film_were_probed_once_on_the_same_videos() -> None:
    records = RESULTS.film_breaking
    assert sorted(record["run"]["detector"] for record in records) == sorted(breaking_points.DETECTORS[:3])
    assert {record["items"] for record in records} == {50}
    assert all(len(record["points"]) == record["kept"] for record in records)


# On film.


def test_every_classifier_was_measured_on_the_same_anchors() -> None:
    anchors = [[anchor for anchor, _, _ in record["anchors"]] for record in RESULTS.film_stability]
    assert all(one == anchors[0] for one in anchors)
    assert {anchor.rpartition("/")[0] for anchor in anchors[0]} == set(SUBJECTS)
    assert f"{len(anchors[0])} in all" in (RESULT_PAGES / "on-film.md").read_text(encoding="utf-8")


def test_no_classifier_is_more_stable_than_accurate() -> None:
    assert all(shares(record)[1] <= shares(record)[0] for record in RESULTS.film_stability)


@pytest.mark.parametrize("where", ["puppet", "film"])
def test_damage_everywhere_is_listed_separately(where: str) -> None:
    row = next(line for line in film_tables.help_detection_table(RESULTS).splitlines() if line.startswith("| as is"))
    (record,) = RESULTS.of(f"{where}_detection_adaptation", treatment="clean", way="as is")
    scores = [score for cell, score in record["cells"].items() if "everywhere" in cell]
    assert len(scores) == 4
    assert f"| {25 * sum(scores):.1f} |" in row


def test_intervals_are_over_groups_of_clips() -> None:
    assert len(CLIPS.owners) == 80
    assert len(set(CLIPS.owners)) == 39
    same = [i for i, owner in enumerate(CLIPS.owners) if owner == CLIPS.owners[0]]
    assert (CLIPS.draws[:, same] == CLIPS.draws[:, same[:1]]).all()


def test_both_damage_finders_judged_the_same_frames() -> None:
    counts_by_network = {record["network"]: record["found"] for record in RESULTS.film_found}
    assert set(counts_by_network) == set(film_tables.FINDERS) == set(film_detection.TREATMENTS_OF)
    first, second = counts_by_network.values()
    assert {way: list(cells) for way, cells in first.items()} == {way: list(cells) for way, cells in second.items()}
    for cell, counts in first["mended"].items():
        assert counts[1::2] == second["mended"][cell][1::2]  # damaged frames, and others


def test_values_of_several_seeds_are_in_order() -> None:
    row = next(line for line in film_tables.help_table(RESULTS).splitlines() if line.startswith("| bn, episodic"))
    shares = {one["run"]["seed"]: one["clean"] for one in RESULTS.film_adaptation if one["run"]["way"] == "bn, episodic"
              and one["run"]["treatment"] == "clean"}  # fmt: skip
    assert f"| {100 * shares[0]:.1f} / {100 * shares[1]:.1f} |" in row


# The inspector, and mending by it.

# Runs that the page lists as missing, by group of cells, network and training; all others were measured.
MISSING = {("main", 1, "clean"): 1, ("main", 1, "drop"): 4, ("main", 1, "drop + TRC"): 12}
MISSING |= {("lengths", 0, "clean"): 3, ("unseen", 0, "clean"): 2}
BEFORE_THE_RULE = ("lengths",)


def test_the_record_of_the_inspector_is_of_the_shipped_weights() -> None:
    fingerprints = {row["fingerprint"] for row in RESULTS.inspector if "fingerprint" in row}
    assert fingerprints == {load_inspector().fingerprint}


def test_every_kind_of_damage_was_measured_on_both_sets_of_films() -> None:
    rows = [row for row in RESULTS.inspector if "film" in row]
    tried = {(row["side"], row["set"], kind) for row in rows for kind in row["found"] if kind in KINDS}
    assert len(tried) == 2 * 2 * len(KINDS)


def test_every_run_of_mending_except_the_listed_ones_was_measured_in_every_cell() -> None:
    assert [record["run"] for record in RESULTS.mending_frames] == [asdict(run) for run in mending_frames.study()]
    measured = count_runs(record["run"] for record in RESULTS.mending)
    planned = count_runs(run for group in EVERY for run in study(group))
    assert measured <= planned
    missing = Counter((group, network, treatment) for _, treatment, _, network, group in planned - measured)
    assert missing == MISSING
    assert {record["films"] for record in RESULTS.mending + RESULTS.mending_frames} == {60}
    for record in RESULTS.mending:
        if record["run"]["group"] != UNSEEN:
            cells = {"clean", *(cell.name for cell in GROUPS[record["run"]["group"]])}
            assert {way: set(scores) for way, scores in record["scores"].items()} == dict.fromkeys(WAYS, cells)


def test_the_size_of_the_recognition_sample_matches_the_page() -> None:
    (recogniser, detections) = RESULTS.mending_recognition
    assert (recogniser["clips"], recogniser["run"]["recogniser"]) == (160, "puppet_c3d")
    assert all(list(scores) == list(detections["found"]) for scores in recogniser["scores"].values())


def test_runs_used_the_shipped_inspector_with_the_listed_exceptions() -> None:
    inspector = load_inspector()
    with_rules = inspector.fingerprint
    inspector.rules = False
    measured = {(record["run"]["group"], record["inspector"]) for record in RESULTS.mending if "inspector" in record}
    alone = inspector.fingerprint
    assert measured == {
        (group, alone if group in BEFORE_THE_RULE else with_rules) for group in EVERY if group != UNSEEN
    }
    assert {record["inspector"] for record in RESULTS.mending_frames if record["run"]["way"] == MENDED} == {with_rules}


def test_all_inspectors_were_trained_for_the_same_number_of_steps() -> None:
    records = RESULTS.mending + RESULTS.mending_shipped
    assert len({count for record in records for count in record.get("inspectors", {}).values()}) == 1


def test_the_rule_and_the_network_alone_were_measured_on_all_films() -> None:
    for group in ("lengths", UNSEEN):
        assert [record["run"]["detector"] for record in with_rule(RESULTS, group)] == list(DETECTORS)
    assert {record["films"] for record in RESULTS.mending_shipped} == {60}
    for record in with_rule(RESULTS, UNSEEN):
        alone, both = (record["found"][without(BLANK) + how] for how in (ALONE, ""))
        assert all(both[cell][0] >= counts[0] for cell, counts in alone.items())  # the rule only adds detections


def test_known_damage_does_not_change_clean_scores() -> None:
    """Clean video has no damaged frames, so the oracle changes nothing."""
    for record in RESULTS.mending:
        if AS_IS in record["scores"]:
            assert record["scores"][KNOWN]["clean"] == record["scores"][AS_IS]["clean"]


def test_every_kind_and_every_system_of_watching_was_measured() -> None:
    assert {record["run"]["kind"] for record in RESULTS.watching} == {*world_damage.KINDS, *OPENED, "clean"}
    assert all(set(record["systems"]) == set(SYSTEMS) for record in RESULTS.watching)


# Questions.


def test_every_model_answered_every_question_in_every_cell() -> None:
    for cells, mend in (("placed", ""), ("pictures", ""), ("placed", "jostle")):
        for weights in TREATMENTS:
            record = find(RESULTS.questions, weights, mend, cells)
            expected = {name for name, group in questions.GROUPS.items() if group in RUNS[cells]}
            assert set(record["choices"]) == {CLEAN, "blind", "one_frame"} | expected
            assert {len(digits) for digits in record["choices"].values()} == {len(record["questions"])}
    for weights in TREATMENTS:  # repeated runs gave the same answers
        first, second = (find(RESULTS.questions, weights, cells=cells)["choices"] for cells in RUNS)
        assert all(first[cell] == second[cell] for cell in (CLEAN, "blind", "one_frame"))


def test_shipped_models_are_25_points_above_the_blind_baseline_on_the_test_part() -> None:
    for weights in SHIPPED:
        record = find(RESULTS.questions, weights)
        assert len(record["questions"]) == 389
        assert score_of(record, CLEAN).accuracy >= score_of(record, "blind").accuracy + 0.25


def test_temporal_sensitivity_separates_the_model_trained_on_shuffled_frames() -> None:
    for cell in DISORDERED:
        intervals = {}
        for weights in TREATMENTS:
            record = find(RESULTS.questions, weights)
            sensitivity = temporal_sensitivity(
                answers_of(record, CLEAN), answers_of(record, cell), questions_of(record)
            )
            assert sensitivity.interval is not None
            intervals[weights] = sensitivity.interval
        assert all(intervals[weights][0] > intervals["shuffled"][1] for weights in SHIPPED)


def test_bundled_recognisers_are_smaller_than_eight_megabytes() -> None:
    recognisers = (*recognition.SHIPPED_RECOGNISERS, frames.CLASSIFIER)
    names = [f"{recogniser}-{name}" for recogniser in recognisers for name in recognition.SHIPPED]
    assert set(names) <= set(packaged_names())
    assert sum(weights_file(name).stat().st_size for name in names) < 8_000_000
