"""Differences of two runs: compared values, remarks and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.synthetic_runs import CELLS, write_run
from jostle.errors import DataError, Incomparable
from jostle.evaluation.results.comparison import analyse_runs, compared
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run, estimate
from jostle.reporting.analysis.labels import run_names
from jostle.reporting.analysis.run_diff import RunDiff, diff_runs


@pytest.fixture(scope="module")
def diff(detection: RunRecord, robust_detection: RunRecord) -> RunDiff:
    return diff_runs(detection, robust_detection, draws=60)


def test_values_equal_those_of_the_runs(diff: RunDiff, detection: RunRecord, robust_detection: RunRecord) -> None:
    assert diff.counted == len(CELLS)
    assert [row.what for row in diff.rows] == ["clean", *CELLS, "mean corrupted", "relative robustness"]
    for row in diff.rows[: 1 + len(CELLS)]:
        assert row.one == pytest.approx(detection.values[row.what])
        assert row.other == pytest.approx(robust_detection.values[row.what])
    assert diff.comparison.corrupted.other == pytest.approx(robust_detection.scores.mean_corrupted)
    assert diff.comparison.relative.one == pytest.approx(detection.scores.relative_robustness)


def test_json_is_antisymmetric(diff: RunDiff, detection: RunRecord, robust_detection: RunRecord) -> None:
    forward = json.loads(json.dumps(diff.to_dict(), allow_nan=False))
    reversed_diff = diff_runs(robust_detection, detection, draws=60).to_dict()
    assert forward["interval"] == {"level": 0.95, "resamples": 60, "seed": 0}
    assert forward["same_truth"] is True
    assert forward["coverage"] == {"videos": 12, "of": 12}
    assert forward["counted"] == {"cells": 4, "of": 4}
    for one, other in zip(forward["cells"], reversed_diff["cells"], strict=True):
        assert one["difference"] == -other["difference"]
        assert one["clear"] == other["clear"]
    assert forward["first"]["model"] == reversed_diff["second"]["model"] == "guesser"
    assert forward["mean_corrupted"]["clear"] is True
    low, high = forward["mean_corrupted"]["interval"]
    assert 0 < low <= forward["mean_corrupted"]["difference"] <= high


def test_significant_differences_are_marked(diff: RunDiff) -> None:
    texts = diff.tables()[0].texts()
    assert [text[-1] == "*" for text in texts] == [row.clear for row in diff.rows]
    assert texts[0][-1] == ""  # clean is the same in both
    assert "* significant: the 95 % interval excludes 0" in diff.remarks


def test_nothing_is_significant_without_draws(detection: RunRecord, robust_detection: RunRecord) -> None:
    plain = diff_runs(detection, robust_detection, draws=0)
    assert plain.to_dict()["interval"] is None
    assert not any(row.clear for row in plain.rows)
    assert plain.remarks == ()


@pytest.mark.parametrize("task", ["recognition", "frames"])
def test_other_tasks(task: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    first: RunRecord = request.getfixturevalue(task)
    videos = 40 if task == "recognition" else 20
    second = RunRecord.read(write_run(tmp_path / "firm", task, videos=videos, weakness=0.2, model="firm"))
    diff = diff_runs(first, second, draws=50)
    assert diff.videos == videos
    assert diff.comparison.corrupted.clear
    for row in diff.comparison.cells:
        assert row.one == pytest.approx(first.values[row.what])
        assert row.other == pytest.approx(second.values[row.what])


def test_only_shared_cells_are_compared(detection: RunRecord, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", model="other")
    (folder / "predictions" / "thumos14-c-motion_blur-3.json").unlink()
    less = RunRecord.read(folder)
    diff = diff_runs(detection, less, draws=0)
    assert [row.what for row in diff.comparison.cells] == list(CELLS[:3])
    assert diff.counted == 3
    assert diff.first.cells_alone == (CELLS[3],)
    assert diff.remarks == (
        f"left out, as only guesser has them: 1 of the cells ({CELLS[3]})",
        "the means are over 3 of the benchmark's 4 cells",
    )
    assert diff.comparison.corrupted.one == pytest.approx(sum(detection.values[cell] for cell in CELLS[:3]) / 3)


@pytest.mark.fault("F48")
def test_F48_other_ground_truth_needs_any_truth(detection: RunRecord, tmp_path: Path) -> None:
    fewer = RunRecord.read(write_run(tmp_path / "fewer", videos=11))
    with pytest.raises(Incomparable, match="different ground truths") as caught:
        diff_runs(detection, fewer, draws=0)
    assert caught.value.exit_code == 6
    assert caught.value.fault == "F48"
    assert "--any-truth" in caught.value.__notes__[0]
    diff = diff_runs(detection, fewer, draws=0, any_truth=True)
    assert diff.videos == 11
    assert not diff.same_truth
    assert "different ground truths" in diff.remarks[0]
    assert "left out, as only run has processed them: 1 of the videos" in diff.remarks


@pytest.mark.fault("F48")
def test_F48_other_recipes_are_refused_whatever_is_allowed(detection: RunRecord, recognition: RunRecord) -> None:
    with pytest.raises(Incomparable, match="different benchmarks") as caught:
        diff_runs(detection, recognition, any_truth=True)
    assert not getattr(caught.value, "__notes__", [])
    with pytest.raises(Incomparable, match="different recipes"):
        diff_runs(detection, recognition, any_data=True)


def test_recipe_on_other_data_needs_any_data(recognition: RunRecord, tmp_path: Path) -> None:
    other = RunRecord.read(write_run(tmp_path / "run", "recognition", videos=9, weakness=0.9, on="shifted"))
    with pytest.raises(Incomparable, match="different benchmarks") as caught:
        diff_runs(recognition, other)
    assert "--any-data" in caught.value.__notes__[0]
    diff = diff_runs(recognition, other, draws=200, any_data=True)
    clean = diff.comparison.clean
    assert (clean.one, clean.other) == (recognition.values["clean"], other.values["clean"])
    assert clean.difference.value == clean.other - clean.one
    one, two = (analyse_run(record, draws=200).drawn[:, 1] for record in (recognition, other))
    assert (
        diff.comparison.cells[0].difference.interval
        == estimate(diff.comparison.cells[0].difference.value, two - one).interval
    )
    # The variances of two independent means add up.
    assert np.var(two - one) == pytest.approx(np.var(one) + np.var(two), rel=0.3)
    assert (diff.paired, diff.videos, diff.to_dict()["paired"]) == (False, 9, False)
    assert "each measured on its own" in diff.remarks[0]
    assert f"{100 * clean.other / clean.one:.1f} % of the clean score" in diff.remarks[1]
    assert not any("left out" in remark for remark in diff.remarks)


def test_other_seeds_have_a_remark(detection: RunRecord) -> None:
    other = replace(detection, about=replace(detection.about, seed=3, model="other"))
    assert "seed of the corruptions: 0 in" in " ".join(diff_runs(detection, other, draws=0).remarks)


def test_names_of_runs_are_distinct(detection: RunRecord, robust_detection: RunRecord) -> None:
    elsewhere = replace(detection, folder=detection.folder / ".." / "aside")
    assert run_names([detection, robust_detection]) == ["guesser", "firmer"]
    assert run_names([detection, elsewhere]) == ["run", "aside"]
    assert run_names([detection, detection]) == ["run (1)", "run (2)"]


def test_paired_differences_equal_those_of_compare(detection: RunRecord, robust_detection: RunRecord) -> None:
    one, other = analyse_runs([detection, robust_detection], draws=80)
    comparison = compared(one, other)
    cell = comparison.cells[0]
    scores = [
        jostle.score(run.predictions(cell.what), run.annotations, protocol="thumos14")
        for run in (detection, robust_detection)
    ]
    expected = jostle.compare(*scores, bootstrap=80)
    assert cell.difference.value == pytest.approx(expected.average_map)
    assert cell.difference.interval == pytest.approx(expected.interval.average_map)
    assert cell.share_below == pytest.approx(expected.share_worse)
    assert comparison.relative.difference.value == pytest.approx(
        robust_detection.scores.relative_robustness - detection.scores.relative_robustness
    )
    assert comparison.corrupted.clear
    assert comparison.clean.difference.value == 0
    assert not comparison.clean.clear


def test_run_against_itself_has_no_difference(recognition: RunRecord) -> None:
    comparison = compared(*analyse_runs([recognition, recognition], draws=20))
    assert all(row.difference.value == 0 and row.difference.interval is None for row in comparison.cells)


def test_only_shared_videos_are_compared(detection: RunRecord, tmp_path: Path) -> None:
    class Partial(RunRecord):
        def predictions(self, cell: str) -> Any:
            return self.task.restrict(super().predictions(cell), detection.annotations.videos[:7])

    other = Partial(detection.folder, detection.about, detection.scores)
    one, two = analyse_runs([detection, other], draws=10)
    assert one.videos == two.videos == detection.annotations.videos[:7]


def test_incomparable_runs_are_refused(detection: RunRecord, recognition: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="runs of different benchmarks, 'made-detection' and 'made-recognition'"):
        analyse_runs([detection, recognition])
    other = RunRecord.read(write_run(tmp_path / "fewer", videos=11))
    with pytest.raises(DataError, match="different ground truths, sha256:"):
        analyse_runs([detection, other])
    newer = replace(detection, about=replace(detection.about, fingerprint="sha256:0123456789abcdef"))
    with pytest.raises(DataError, match="different versions of a benchmark"):
        analyse_runs([detection, newer])
    one, two = analyse_runs([detection, detection])
    with pytest.raises(DataError, match="not of the same videos and draws"):
        compared(one, replace(two, videos=two.videos[:2]))
