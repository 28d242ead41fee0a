"""Conditions on runs: decided by intervals, on complete runs of the same benchmark only."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import jostle
from helpers.synthetic_runs import write_run
from jostle.errors import BadValue, Incomparable, UnknownName
from jostle.evaluation.results.cell_scores import class_scores, measured_cell
from jostle.evaluation.results.record import RunRecord
from jostle.gate.budget import Condition
from jostle.gate.evidence import Evidence, enough_draws
from jostle.gate.outputs import github_commands, junit, markdown
from jostle.gate.verdict import Check, DecidedCondition, _decide
from jostle.metrics.bootstrap import video_weights

BLACK = "thumos14-c/black_frame:3"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "sound": write_run(folder / "sound", videos=40),
        "frail": write_run(folder / "frail", videos=40, weakness=1.7, model="frail"),
        "recogniser": write_run(folder / "recogniser", "recognition", videos=200),
        "frail recogniser": write_run(folder / "worse", "recognition", videos=200, weakness=2.5),
    }


def decide(*conditions: dict[str, Any], run: Path, against: Path | None = None) -> list[DecidedCondition]:
    return list(jostle.check(run, against, {"condition": list(conditions)}).conditions)


def test_less_robust_model_fails_and_more_robust_one_passes(runs: dict[str, Path]) -> None:
    worse = jostle.check(runs["frail recogniser"], runs["recogniser"])
    assert [one.metric for one in worse.conditions] == ["clean", "mean_corrupted"]
    assert [one.decision for one in worse.conditions] == ["pass", "fail"]
    assert (worse.passed, worse.decision) == (False, "fail")
    assert worse.conditions[1].interval[1] < worse.conditions[1].limit == -0.02
    better = jostle.check(runs["recogniser"], runs["frail recogniser"])
    assert better.passed
    assert any("Holm" in remark for remark in better.remarks)


@pytest.mark.parametrize(("task", "group"), [("questions", "order"), ("moments", "short")])
def test_language_runs_are_decided_by_video(task: str, group: str, tmp_path: Path) -> None:
    cells = ("thumos14-c/black_frame:3", "kinetics-c/shot_noise:3")
    sound = write_run(tmp_path / "sound", task, videos=60, cells=cells, weakness=0.3)
    frail = write_run(tmp_path / "frail", task, videos=60, cells=cells, weakness=2.0)
    names = ("clean", "mean_corrupted", "relative_robustness", f"cell:{BLACK}", "family:noise", f"class:{group}")
    passed = decide(*({"metric": name, "at_least": 0.1} for name in names), run=sound)
    assert [one.decision for one in passed] == ["pass"] * len(names)
    assert all(one.interval is not None for one in passed)
    compared = jostle.check(frail, sound)
    assert [one.decision for one in compared.conditions][1] == "fail"
    with pytest.raises(UnknownName, match="class of the run"):
        decide({"metric": "class:other", "at_least": 0.1}, run=sound)


def test_few_videos_without_a_difference_are_undecided(runs: dict[str, Path]) -> None:
    """Forty unchanged videos do not exclude that one in twenty changes."""
    clean, _ = jostle.check(runs["sound"], runs["frail"]).conditions
    assert clean.value == 0
    assert clean.interval[0] < -0.02
    assert clean.decision == "undecided"
    itself = jostle.check(runs["sound"], runs["sound"])
    assert itself.passed  # the same predictions to the last bit
    assert "the predictions of both runs are the same to the last bit" in itself.remarks


@pytest.mark.parametrize(
    ("metric", "low", "high"),
    [
        ("clean", 0.3, 0.999),
        ("mean_corrupted", 0.02, 0.9),
        ("relative_robustness", 0.02, 0.99),
        (f"cell:{BLACK}", 0.0, 0.9),
        ("family:blur", 0.02, 0.9),
        ("class:jump", 0.01, 0.9),
    ],
)
def test_every_metric_against_a_limit(runs: dict[str, Path], metric: str, low: float, high: float) -> None:
    passed, failed = (decide({"metric": metric, "at_least": limit}, run=runs["sound"])[0] for limit in (low, high))
    assert (passed.decision, failed.decision) == ("pass", "fail")
    between = decide({"metric": metric, "at_least": round(passed.value, 4) or 0.001}, run=runs["sound"])[0]
    assert between.decision == "undecided"


def test_class_condition_uses_the_score_of_the_class_table(runs: dict[str, Path]) -> None:
    for name in ("sound", "recogniser"):
        record = RunRecord.read(runs[name])
        videos = tuple(record.task.videos_of(record.predictions("clean")))
        weights = video_weights(videos, 3)
        ones = np.ones((1, len(videos)), np.int16)
        measure = measured_cell(record, BLACK, videos, weights)
        for i, label in enumerate(("jump", "run", "sit down")):
            one = class_scores(record, BLACK, videos, ones, label)
            assert one.value == pytest.approx(measure.by_class[i])
            assert one.drawn.tolist() == pytest.approx([one.value])
            assert one.videos > 2
            assert class_scores(record, BLACK, videos, weights, label).drawn.shape == (3,)


def test_several_conditions_are_corrected_for_multiplicity() -> None:
    """Ten conditions at their limits: with uncorrected 95 % intervals one would be decided wrongly."""
    conditions = [Condition("clean", at_least=0.5, name=str(i)) for i in range(10)]

    def measured(distance: float) -> Evidence:
        """Return a measurement with the interval of a unit normal distribution (1.96 at 95 %)."""
        quantiles = NormalDist().inv_cdf
        draws = 0.5 + distance + np.array([quantiles((i + 0.5) / 100_000) for i in range(100_000)])
        return Evidence(0.5 + distance, 0.5, None, 40, draws, draws, draws)

    decided = _decide(conditions, [measured(2.0), *(measured(0.1) for _ in range(9))])
    assert {one.decision for one in decided} == {"undecided"}
    assert {round(one.interval_level, 6) for one in decided} == {0.995}
    decided = _decide(conditions, [measured(9.0), measured(-2.79), *(measured(0.1) for _ in range(8))])
    assert [one.decision for one in decided[:3]] == ["pass", "fail", "undecided"]  # 2.77 is the limit of the second
    assert _decide(conditions[:1], [measured(2.0)])[0].decision == "pass"


def test_more_conditions_take_more_draws() -> None:
    assert enough_draws([0.95], 1, 40, averaged=False) == 1000
    assert enough_draws([0.95] * 10, 10, 40, averaged=False) == 4000
    assert enough_draws([0.95], 1, 40, averaged=True) == 10_000
    assert enough_draws([0.95], 1, 5000, averaged=True) == 2000


@pytest.mark.fault("F150")
def test_incomplete_and_incomparable_runs_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    part = write_run(tmp_path / "part", videos=40, fails=("video_0003",))
    checked = jostle.check(part, budget={"condition": [{"metric": "clean", "at_least": 0.0}]})
    assert checked.decision == "undecided"
    assert "video_0003" in checked.gaps[0]
    assert checked.conditions[0].gap
    with pytest.raises(Incomparable, match="different benchmarks"):
        jostle.check(runs["recogniser"], runs["sound"])
    lacking = write_run(tmp_path / "lacking", videos=40)
    for file in (lacking / "predictions").glob("*motion_blur*"):
        file.unlink()
    clean, corrupted = jostle.check(lacking, runs["sound"]).conditions
    assert not clean.gap
    assert corrupted.gap
    assert (corrupted.decision, corrupted.value) == ("undecided", None)
    assert "motion_blur" in corrupted.reason


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"metric": "speed", "at_least": 0.5}, "metric is one of clean"),
        ({"metric": "clean"}, "give at_least or at_most_below_reference"),
        ({"metric": "clean", "at_least": 0.5, "at_most_below_reference": 0.1}, "one of the two"),
        ({"metric": "clean", "at_least": 60.0}, "fractions from 0 to 1, not 60"),
        ({"metric": "clean", "at_least": 0.5, "level": 95.0}, "level must be at least 0.5"),
        ({"metric": "clean", "at_most": 0.5}, "no such setting"),
        ({"metric": "clean", "at_most_below_reference": 0.1}, "needs a reference run"),
    ],
)
def test_invalid_budgets_are_refused(runs: dict[str, Path], condition: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        decide(condition, run=runs["sound"])


def test_unknown_names_in_budgets_are_refused(runs: dict[str, Path]) -> None:
    for metric, known in (
        ("cell:thumos14-c/black_frame:4", "black_frame:3"),
        ("family:blue", "blur"),
        ("class:jmp", "jump"),
    ):
        with pytest.raises(UnknownName, match=known):
            decide({"metric": metric, "at_least": 0.5}, run=runs["sound"])
    with pytest.raises(BadValue, match="nothing to check"):
        jostle.check(runs["sound"])


def hostile_check() -> Check:
    rows = [
        DecidedCondition("a <b> & \x00 |, at: 5 %\nnext", "clean", 0.5, (0.4, 0.6), 0.7, "fail", 0.95, 0.975, 0.5),
        *(DecidedCondition(f"c{i}", "clean", 0.0, None, -0.02, "undecided", 0.95, 0.95, 0.5, 0.5) for i in range(12)),
        DecidedCondition("good", "clean", 0.9, (0.8, 0.95), 0.7, "pass", 0.95, 0.95, 0.9),
    ]
    return Check("made", "runs/a", "runs/b", tuple(rows), 40, 1000, ("a remark",))


def test_junit_is_valid_xml_for_hostile_names() -> None:
    suite = ElementTree.fromstring(junit(hostile_check())).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("14", "1", "12")
    cases = suite.findall("testcase")
    assert cases[0].get("name") == "a <b> & #x00 |, at: 5 % next"
    failure = cases[0].find("failure")
    assert "limit 70.00: fail" in (failure.get("message") or "")
    assert cases[1].find("error") is not None
    assert [part.tag for part in cases[-1]] == ["system-out"]
    assert [one.get("value") for one in suite.findall("properties/property")][-1] == "a remark"


def test_annotations_are_limited_and_single_line() -> None:
    commands = github_commands(hostile_check())
    assert len(commands) == 10
    assert commands[0].startswith("::error title=jostle check%3A a <b> & \x00 |%2C at%3A 5 %25%0Anext::50.00")
    assert all(command.startswith("::warning") and "\n" not in command for command in commands[1:])
    assert "| good | 90.00 |" in markdown(hostile_check())
