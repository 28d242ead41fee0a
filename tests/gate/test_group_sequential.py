"""Group sequential stopping of detector runs: resumable, consistent with the full run, bounded error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.synthetic_runs import CELLS, finished_run, names_of, recipe_of, write_run
from jostle.errors import BadValue
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.metadata import Content
from jostle.gate.budget import Budget, Condition
from jostle.gate.evidence import Evidence
from jostle.gate.gaps import Scope
from jostle.gate.group_sequential import GroupSequentialStop, check_intervals, planned_looks
from jostle.metrics.metric import metrics

VIDEOS = 80
SOME = CELLS[1:3]
NO_WORSE = Budget(
    (Condition("clean", at_most_below_reference=0.3), Condition("mean_corrupted", at_most_below_reference=0.3))
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(
        tmp_path_factory.mktemp("looks") / "reference", "detection", videos=VIDEOS, weakness=0.3, cells=SOME
    )


def stop_rule(budget: Budget, reference: Path | None, videos: int = VIDEOS, task: str = "detection") -> Any:
    recipe = recipe_of(task, SOME)
    record = None if reference is None else RunRecord.read(reference)
    return GroupSequentialStop(Scope.of(Content.of(recipe.content())), names_of(videos), budget, record)


def run_until(out: Path, budget: Budget | None, reference: Path | None = None, **options: Any) -> Run:
    rule = None if budget is None else stop_rule(budget, reference)
    options = {"weakness": 0.3, "cells": SOME} | options
    return finished_run(out, "detection", videos=VIDEOS, stopping=rule, **options)


def test_frail_detector_fails_at_a_look(reference: Path, tmp_path: Path) -> None:
    run = run_until(tmp_path / "frail", NO_WORSE, reference, weakness=2.0)
    stop = run.stopped_early
    assert stop is not None
    assert [one.decision for one in stop.conditions] == ["pass", "fail"]
    assert stop.videos == planned_looks(VIDEOS)[1] == 40
    assert run.scores["coverage"]["videos"] == 40
    assert "planned looks" in json.loads((tmp_path / "frail" / "run.json").read_text())["stopped_early"]["reason"]
    checked = jostle.check(tmp_path / "frail", reference, NO_WORSE)
    assert checked.decision == "fail"
    assert "random part" in checked.remarks[0]
    assert [one.videos for one in checked.conditions] == [20, 40]


@pytest.mark.parametrize("task", ["questions", "moments", "frames"])
def test_other_tasks_are_decided_at_a_look(task: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", task, videos=40, cells=SOME)
    budget = Budget((Condition("clean", at_least=0.01), Condition("mean_corrupted", at_least=0.99)))
    rule = stop_rule(budget, None, videos=40, task=task)
    for name in rule.order[:20]:
        rule.add(name, dict.fromkeys(("clean", *SOME)))
    rule.read(run)
    assert [one.decision for one in rule.to_record().conditions] == ["pass", "fail"]


def test_stopped_run_resumes_up_to_the_full_benchmark(reference: Path, tmp_path: Path) -> None:
    first = run_until(tmp_path / "run", NO_WORSE, reference, weakness=2.0)
    again = run_until(tmp_path / "run", NO_WORSE, reference, weakness=2.0)
    assert again.scores == first.scores
    assert again.work is None  # no video was left
    complete_run = run_until(tmp_path / "run", None, weakness=2.0)
    plain = run_until(tmp_path / "plain", None, weakness=2.0)
    assert complete_run.stopped_early is None
    assert complete_run.scores == plain.scores
    for file in (tmp_path / "plain" / "predictions").iterdir():
        assert (tmp_path / "run" / "predictions" / file.name).read_bytes() == file.read_bytes()


def test_limit_at_the_score_takes_all_videos(reference: Path, tmp_path: Path) -> None:
    value = jostle.check(reference, budget={"condition": [{"metric": "clean", "at_least": 0.1}]}).conditions[0].value
    exact = Budget((Condition("clean", at_least=round(value, 3)),))
    run = run_until(tmp_path / "run", exact)
    assert run.stopped_early is None
    assert run.scores["coverage"]["videos"] == VIDEOS


def test_failed_video_disables_early_stopping(reference: Path, tmp_path: Path) -> None:
    broken = stop_rule(NO_WORSE, reference).order[0]
    run = run_until(tmp_path / "run", NO_WORSE, reference, weakness=2.0, fails=(broken,))
    assert run.stopped_early is None
    assert run.scores["coverage"]["videos"] == VIDEOS - 1


def test_order_of_finished_videos_does_not_matter(reference: Path) -> None:
    rules = [stop_rule(NO_WORSE, reference) for _ in range(2)]
    scores = dict.fromkeys(("clean", *SOME))
    for name in rules[0].order[:20]:
        rules[0].add(name, scores)
    for name in reversed(rules[1].order[:60]):
        rules[1].add(name, scores)
    for rule in rules:
        assert rule.due
        rule.read(reference)
    assert rules[0].to_record() == rules[1].to_record()
    assert {one.decision for one in rules[0].to_record().conditions} == {"pass"}


def test_undecidable_conditions_are_refused(reference: Path) -> None:
    with pytest.raises(BadValue, match="need one"):
        stop_rule(NO_WORSE, None)
    with pytest.raises(BadValue, match="too few"):
        stop_rule(NO_WORSE, reference, videos=20)
    with pytest.raises(BadValue, match="has no intervals"):
        check_intervals("mine-c", metrics["video_mean_ap"])


def test_error_rate_at_the_limit_is_bounded() -> None:
    # The share of detected actions among all actions, which differ in number per video: like mAP, no mean over videos.
    rng = np.random.default_rng(5)
    runs, videos, limit, draws = 1000, 160, 0.6, 1600
    looks = planned_looks(videos)
    level = 1 - 0.05 / len(looks)
    actions = 1 + rng.poisson(5, (runs, videos))
    detected = rng.binomial(actions, np.clip(rng.normal(limit, 0.15, (runs, videos)), 0, 1))
    wrong, decided = {"pass": 0, "fail": 0}, np.zeros(runs, bool)
    for count in looks:
        weights = rng.standard_exponential((count, draws))
        hits, total = detected[:, :count] @ weights, actions[:, :count] @ weights
        unseen = actions[:, :count].max(axis=1)[:, None] * rng.standard_exponential(draws)
        values = detected[:, :count].sum(axis=1) / actions[:, :count].sum(axis=1)
        for run in np.flatnonzero(~decided):
            whole = total[run] + unseen[run]
            ends = hits[run] / whole, (hits[run] + unseen[run]) / whole
            value = float(values[run])
            evidence = Evidence(value, value, None, count, hits[run] / total[run], *ends)
            low, high = evidence.interval(level) or (0.0, 1.0)
            if low >= limit or high < limit:
                wrong["pass" if low >= limit else "fail"] += 1
                decided[run] = True
    assert max(wrong.values()) <= 0.05 * runs, wrong
    assert sum(wrong.values()) > 0  # at the limit itself some decisions must be wrong
