"""Runs that stop once a budget is decided: marked, resumable, and never mistaken for the full benchmark."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.synthetic_runs import CELLS, annotations_of, finished_run, names_of, recipe_of, write_run
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.results.cell_scores import video_values
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.metadata import Content
from jostle.gate.budget import Budget, Condition
from jostle.gate.early_stopping import SequentialStop
from jostle.gate.gaps import Scope
from jostle.gate.group_sequential import GroupSequentialStop, check_intervals, planned_looks
from jostle.metrics.metric import metrics


@dataclass(frozen=True)
class Stopped:
    """A kind of runs that can be stopped: videos decided one by one, or at planned looks."""

    task: str
    videos: int
    cells: tuple[str, ...]
    weakness: float
    frail: float
    tolerance: float

    @property
    def no_worse(self) -> Budget:
        """A budget that a frail model passes on clean video, and fails under corruption."""
        metrics = ("clean", "mean_corrupted")
        return Budget(tuple(Condition(metric, at_most_below_reference=self.tolerance) for metric in metrics))

    def rule(self, budget: Budget, reference: Path | None, videos: int = 0, **options: Any) -> Any:
        scope = Scope.of(Content.of(recipe_of(self.task, self.cells).content()))
        names = names_of(videos or self.videos)
        record = None if reference is None else RunRecord.read(reference)
        if self.task != "recognition":
            return GroupSequentialStop(scope, names, budget, record)
        labels = annotations_of("recognition", self.videos, ("jump", "run", "sit down"))
        return SequentialStop(scope, names, labels, budget, record, seed=0, **options)  # type: ignore[arg-type]

    def run(self, out: Path, reference: Path | None = None, **options: Any) -> Run:
        """Run a frail model, which is stopped if there is a reference."""
        rule = None if reference is None else self.rule(self.no_worse, reference)
        options = {"weakness": self.frail, "cells": self.cells} | options
        return finished_run(out, self.task, videos=self.videos, stopping=rule, **options)


ONE_BY_ONE = Stopped("recognition", 120, CELLS, 1.0, 2.5, 0.1)
AT_LOOKS = Stopped("detection", 80, CELLS[1:3], 0.3, 2.0, 0.3)


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("references")
    return {
        kind.task: write_run(root / kind.task, kind.task, videos=kind.videos, weakness=kind.weakness, cells=kind.cells)
        for kind in (ONE_BY_ONE, AT_LOOKS)
    }


@pytest.fixture
def reference(references: dict[str, Path]) -> Path:
    return references["recognition"]


both_kinds = pytest.mark.parametrize("kind", [ONE_BY_ONE, AT_LOOKS], ids=["one by one", "at looks"])


@pytest.mark.fault("F150")
@both_kinds
def test_frail_model_fails_after_few_videos(kind: Stopped, references: dict[str, Path], tmp_path: Path) -> None:
    folder, reference = tmp_path / "frail", references[kind.task]
    run = kind.run(folder, reference)
    stop = run.stopped_early
    assert [one.decision for one in stop.conditions] == ["pass", "fail"]
    assert run.scores["coverage"]["videos"] == stop.videos
    assert run.to_dict()["stopped_early"]["of"] == kind.videos
    reason = json.loads((folder / "run.json").read_text())["stopped_early"]["reason"]
    if kind is ONE_BY_ONE:
        assert stop.videos < kind.videos / 2
        assert reason.startswith(f"every condition is decided after {stop.videos} of {kind.videos}")
    else:
        assert stop.videos == planned_looks(kind.videos)[1] == 40
        assert [one.videos for one in stop.conditions] == [20, 40]
        assert "planned looks" in reason
    for checked in (jostle.check(folder, reference, kind.no_worse), jostle.check(folder)):
        assert (checked.decision, checked.passed) == ("fail", False)
        assert "stopped early, and is decided by" in checked.remarks[0]
        assert ("random part" in checked.remarks[0]) == (kind is AT_LOOKS)
        assert [one.videos for one in checked.conditions] == [one.videos for one in stop.conditions]
        clean, corrupted = checked.conditions
        assert clean.value == 0
        assert clean.run == clean.reference
        assert corrupted.value == pytest.approx((corrupted.run or 0) - (corrupted.reference or 0))
        assert corrupted.value < -0.2
    if kind is ONE_BY_ONE:
        exact = jostle.check(folder, budget={"condition": [{"metric": "clean", "at_least": 0.94}]})
        assert exact.decision == "undecided"
        assert "not decided by" in exact.conditions[0].reason
    assert jostle.check(folder, budget={"condition": [{"metric": "clean", "at_least": 0.1}]}).decision == "pass"


@both_kinds
def test_stopped_run_resumes_up_to_the_full_benchmark(
    kind: Stopped, references: dict[str, Path], tmp_path: Path
) -> None:
    first = kind.run(tmp_path / "run", references[kind.task])
    again = kind.run(tmp_path / "run", references[kind.task])
    assert again.scores == first.scores
    assert again.work is None  # no video was left
    complete_run = kind.run(tmp_path / "run")
    assert complete_run.stopped_early is None
    assert complete_run.scores["coverage"]["videos"] == kind.videos
    assert "stopped_early" not in json.loads((tmp_path / "run" / "run.json").read_text())
    plain = kind.run(tmp_path / "plain")
    assert complete_run.scores == plain.scores
    for file in (tmp_path / "plain" / "predictions").iterdir():
        assert (tmp_path / "run" / "predictions" / file.name).read_bytes() == file.read_bytes()


@both_kinds
def test_failed_video_disables_early_stopping(kind: Stopped, references: dict[str, Path], tmp_path: Path) -> None:
    broken = kind.rule(kind.no_worse, references[kind.task]).order[0]
    run = kind.run(tmp_path / "run", references[kind.task], fails=(broken,))
    assert run.stopped_early is None
    assert run.scores["coverage"]["videos"] == kind.videos - 1


@both_kinds
def test_order_of_finished_videos_does_not_matter(kind: Stopped, references: dict[str, Path]) -> None:
    reference = references[kind.task]
    at_once = kind is ONE_BY_ONE
    budget = Budget((Condition("clean", at_least=0.5),)) if at_once else kind.no_worse
    rules = [kind.rule(budget, None if at_once else reference) for _ in range(2)]
    answers = {
        name: dict.fromkeys(("clean", *kind.cells), float(number % 10 > 0) if at_once else None)
        for number, name in enumerate(rules[0].order)
    }
    for name in rules[0].order[: None if at_once else 20]:
        rules[0].add(name, answers[name])
        if rules[0].decided:
            break
    for name in reversed(rules[1].order[:60]):
        rules[1].add(name, answers[name])
    if not at_once:
        for rule in rules:
            assert rule.due
            rule.read(reference)
    assert rules[0].to_record() == rules[1].to_record()
    assert {one.decision for one in rules[0].to_record().conditions} == {"pass"}


@both_kinds
def test_conditions_on_a_reference_need_one(kind: Stopped) -> None:
    with pytest.raises(BadValue, match="need one"):
        kind.rule(kind.no_worse, None)


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
def test_decisions_agree_with_those_on_all_videos(reference: Path, condition: Condition, decision: str) -> None:
    assert jostle.check(reference, budget=Budget((condition,))).conditions[0].decision == decision
    rule, record = ONE_BY_ONE.rule(Budget((condition,)), None), RunRecord.read(reference)
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


def test_undecidable_conditions_are_refused(references: dict[str, Path]) -> None:
    relative = Budget((Condition("relative_robustness", at_most_below_reference=0.1),))
    with pytest.raises(BadValue, match="cannot be decided early"):
        ONE_BY_ONE.rule(relative, references["recognition"])
    for metric in ("cell:none:1", "family:none", "class:none"):
        with pytest.raises(UnknownName):
            ONE_BY_ONE.rule(Budget((Condition(metric, at_least=0.1),)), None)
    with pytest.raises(BadValue, match="too few"):
        AT_LOOKS.rule(AT_LOOKS.no_worse, references["detection"], videos=20)
    with pytest.raises(BadValue, match="has no intervals"):
        check_intervals("mine-c", metrics["video_mean_ap"])


@pytest.mark.parametrize("task", ["questions", "moments", "frames"])
def test_other_tasks_are_decided_at_a_look(task: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", task, videos=40, cells=AT_LOOKS.cells)
    budget = Budget((Condition("clean", at_least=0.01), Condition("mean_corrupted", at_least=0.99)))
    rule = replace(AT_LOOKS, task=task, videos=40).rule(budget, None)
    for name in rule.order[:20]:
        rule.add(name, dict.fromkeys(("clean", *AT_LOOKS.cells)))
    rule.read(run)
    assert [one.decision for one in rule.to_record().conditions] == ["pass", "fail"]


def test_limit_at_the_score_takes_all_videos(references: dict[str, Path], tmp_path: Path) -> None:
    reference = references["detection"]
    value = jostle.check(reference, budget={"condition": [{"metric": "clean", "at_least": 0.1}]}).conditions[0].value
    exact = Budget((Condition("clean", at_least=round(value, 3)),))
    rule = AT_LOOKS.rule(exact, None)
    run = finished_run(
        tmp_path / "run", "detection", videos=AT_LOOKS.videos, weakness=0.3, cells=AT_LOOKS.cells, stopping=rule
    )
    assert run.stopped_early is None
    assert run.scores["coverage"]["videos"] == AT_LOOKS.videos
