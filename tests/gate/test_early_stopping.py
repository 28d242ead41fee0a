"""Runs that stop once a budget is decided: marked, resumable, and never mistaken for the full benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.synthetic_runs import annotations_of, finished_run, names_of, recipe_of, write_run
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.metadata import Content
from jostle.gate.budget import Budget, Condition
from jostle.gate.early_stopping import SequentialStop
from jostle.gate.gaps import Scope

VIDEOS = 120
NO_WORSE = Budget(
    (Condition("clean", at_most_below_reference=0.1), Condition("mean_corrupted", at_most_below_reference=0.1))
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("early") / "reference", "recognition", videos=VIDEOS)


def stop_rule(budget: Budget, reference: Path | None, seed: int = 0, **options: Any) -> SequentialStop:
    recipe, labels = recipe_of("recognition"), annotations_of("recognition", VIDEOS, ("jump", "run", "sit down"))
    record = None if reference is None else RunRecord.read(reference)
    scope = Scope.of(Content.of(recipe.content()))
    return SequentialStop(scope, names_of(VIDEOS), labels, budget, record, seed=seed, **options)  # type: ignore[arg-type]


def run_until(out: Path, budget: Budget | None, reference: Path | None = None, **options: Any) -> Run:
    rule = None if budget is None else stop_rule(budget, reference)
    return finished_run(out, "recognition", videos=VIDEOS, stopping=rule, **options)


def test_frail_model_fails_after_few_videos(reference: Path, tmp_path: Path) -> None:
    run = run_until(tmp_path / "frail", NO_WORSE, reference, weakness=2.5)
    stop = run.stopped_early
    assert stop is not None
    assert [one.decision for one in stop.conditions] == ["pass", "fail"]
    assert stop.videos < VIDEOS / 2
    assert run.scores["coverage"]["videos"] == stop.videos
    metadata = json.loads((tmp_path / "frail" / "run.json").read_text())
    assert metadata["stopped_early"]["reason"].startswith(f"every condition is decided after {stop.videos} of {VIDEOS}")
    assert run.to_dict()["stopped_early"]["of"] == VIDEOS


@pytest.mark.fault("F150")
def test_decisions_are_recomputed_for_any_budget(reference: Path, tmp_path: Path) -> None:
    stop = run_until(tmp_path / "frail", NO_WORSE, reference, weakness=2.5).stopped_early
    assert stop is not None
    for checked in (jostle.check(tmp_path / "frail", reference, NO_WORSE), jostle.check(tmp_path / "frail")):
        assert (checked.decision, checked.passed) == ("fail", False)
        assert "stopped early, and is decided by" in checked.remarks[0]
        clean, corrupted = checked.conditions
        assert [one.videos for one in checked.conditions] == [one.videos for one in stop.conditions]
        assert clean.value == 0
        assert clean.run == clean.reference
        assert corrupted.value is not None
        assert corrupted.value == pytest.approx((corrupted.run or 0) - (corrupted.reference or 0))
        assert corrupted.value < -0.2
    other = jostle.check(tmp_path / "frail", budget={"condition": [{"metric": "clean", "at_least": 0.1}]})
    assert other.decision == "pass"
    exact = jostle.check(tmp_path / "frail", budget={"condition": [{"metric": "clean", "at_least": 0.94}]})
    assert exact.decision == "undecided"
    assert "not decided by" in exact.conditions[0].reason


def test_fail_fast_ends_at_the_first_failure(reference: Path) -> None:
    budget = Budget((Condition("clean", at_least=0.93), Condition("mean_corrupted", at_least=0.99)))
    record = RunRecord.read(reference)
    from jostle.evaluation.results.cell_scores import video_values

    looks = []
    for fail_fast in (False, True):
        rule = stop_rule(budget, None, fail_fast=fail_fast)
        right = {cell: [*video_values(record, cell, rule.order).values()] for cell in record.cells}
        for i, name in enumerate(rule.order):
            rule.add(name, {cell: float(right[cell][i]) for cell in record.cells})
            if rule.decided:
                break
        looks.append(rule.to_record())
    assert looks[1].videos < looks[0].videos
    assert [one.decision for one in looks[1].conditions] == ["undecided", "fail"]
    assert "has failed after" in looks[1].reason


def test_stopped_run_resumes_up_to_the_full_benchmark(reference: Path, tmp_path: Path) -> None:
    first = run_until(tmp_path / "run", NO_WORSE, reference, weakness=2.5)
    again = run_until(tmp_path / "run", NO_WORSE, reference, weakness=2.5)
    assert again.scores == first.scores
    assert again.work is None  # no video was left
    complete_run = run_until(tmp_path / "run", None, weakness=2.5)
    assert complete_run.stopped_early is None
    assert complete_run.scores["coverage"]["videos"] == VIDEOS
    assert "stopped_early" not in json.loads((tmp_path / "run" / "run.json").read_text())
    plain = run_until(tmp_path / "plain", None, weakness=2.5)
    assert complete_run.scores == plain.scores
    for file in (tmp_path / "plain" / "predictions").iterdir():
        assert (tmp_path / "run" / "predictions" / file.name).read_bytes() == file.read_bytes()


def test_order_of_finished_videos_does_not_matter(reference: Path) -> None:
    record = RunRecord.read(reference)
    rules = [stop_rule(Budget((Condition("clean", at_least=0.5),)), None) for _ in range(2)]
    cells = list(record.cells)
    answers = {name: {cell: float(number % 10 > 0) for cell in cells} for number, name in enumerate(rules[0].order)}
    for name in rules[0].order:
        rules[0].add(name, answers[name])
        if rules[0].decided:
            break
    for name in reversed(rules[1].order[:60]):
        rules[1].add(name, answers[name])
    assert rules[0].to_record() == rules[1].to_record()


def test_failed_video_disables_early_stopping(reference: Path, tmp_path: Path) -> None:
    run = run_until(
        tmp_path / "run", NO_WORSE, reference, weakness=2.5, fails=(stop_rule(NO_WORSE, reference).order[0],)
    )
    assert run.stopped_early is None
    assert run.scores["coverage"]["videos"] == VIDEOS - 1


@pytest.mark.parametrize(
    ("condition", "decision"),
    [
        (Condition("mean_corrupted", at_least=0.3), "pass"),
        (Condition("relative_robustness", at_least=0.98), "fail"),
        (Condition("relative_robustness", at_least=0.3), "pass"),
        (Condition("family:blur", at_least=0.95), "fail"),
        (Condition("class:jump", at_least=0.2), "pass"),
        (Condition("cell:thumos14-c/black_frame:1", at_least=0.5), "pass"),
    ],
)
def test_decisions_agree_with_those_on_all_videos(
    reference: Path, tmp_path: Path, condition: Condition, decision: str
) -> None:
    assert jostle.check(reference, budget=Budget((condition,))).conditions[0].decision == decision
    rule, record = stop_rule(Budget((condition,)), None), RunRecord.read(reference)
    from jostle.evaluation.results.cell_scores import video_values

    right = {cell: [*video_values(record, cell, rule.order).values()] for cell in record.cells}
    for i, name in enumerate(rule.order):
        rule.add(name, {cell: float(right[cell][i]) for cell in record.cells})
        if rule.decided:
            break
    decided = rule.to_record().conditions[0]
    assert decided.decision == decision
    partial_mean = {cell: float(np.mean(answers[: decided.videos])) for cell, answers in right.items()}
    if condition.metric.startswith("cell"):
        assert decided.value == pytest.approx(partial_mean["thumos14-c/black_frame:1"])
    if condition.metric == "relative_robustness":
        corrupted = [partial_mean[cell] for cell in record.counted]
        assert decided.value == pytest.approx(sum(corrupted) / len(corrupted) / partial_mean["clean"])


def test_undecidable_conditions_are_refused(reference: Path) -> None:
    with pytest.raises(BadValue, match="cannot be decided early"):
        stop_rule(Budget((Condition("relative_robustness", at_most_below_reference=0.1),)), reference)
    with pytest.raises(BadValue, match="need one"):
        stop_rule(NO_WORSE, None)
    for metric in ("cell:none:1", "family:none", "class:none"):
        with pytest.raises(UnknownName):
            stop_rule(Budget((Condition(metric, at_least=0.1),)), None)
