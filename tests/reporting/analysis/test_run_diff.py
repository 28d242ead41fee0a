"""Two runs side by side: what is compared, what is said, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.made_runs import CELLS, made_run
from jostle.errors import Incomparable
from jostle.evaluation.runner.runner import Run
from jostle.features.extraction import Cost
from jostle.reporting.analysis.labels import run_names
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import estimate, survey
from jostle.reporting.analysis.run_diff import RunDiff, diff_runs


@pytest.fixture(scope="module")
def found(detection: RunRecord, firmer: RunRecord) -> RunDiff:
    return diff_runs(detection, firmer, draws=60)


def test_values_are_those_of_the_runs(found: RunDiff, detection: RunRecord, firmer: RunRecord) -> None:
    assert found.counted == len(CELLS)
    assert [row.what for row in found.rows] == ["clean", *CELLS, "mean corrupted", "relative robustness"]
    for row in found.rows[: 1 + len(CELLS)]:
        assert row.one == pytest.approx(detection.values[row.what])
        assert row.other == pytest.approx(firmer.values[row.what])
    assert found.comparison.corrupted.other == pytest.approx(firmer.scores.mean_corrupted)
    assert found.comparison.relative.one == pytest.approx(detection.scores.relative_robustness)


def test_json_is_plain_and_turns_with_the_runs(found: RunDiff, detection: RunRecord, firmer: RunRecord) -> None:
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    back = diff_runs(firmer, detection, draws=60).to_dict()
    assert told["interval"] == {"level": 0.95, "resamples": 60, "seed": 0}
    assert told["same_truth"] is True
    assert told["coverage"] == {"videos": 12, "of": 12}
    assert told["counted"] == {"cells": 4, "of": 4}
    for one, other in zip(told["cells"], back["cells"], strict=True):
        assert one["difference"] == -other["difference"]
        assert one["clear"] == other["clear"]
    assert told["first"]["model"] == back["second"]["model"] == "guesser"
    assert told["mean_corrupted"]["clear"] is True
    low, high = told["mean_corrupted"]["interval"]
    assert 0 < low <= told["mean_corrupted"]["difference"] <= high


def test_clear_differences_are_marked(found: RunDiff) -> None:
    texts = found.table().texts()
    assert [text[-1] == "*" for text in texts] == [row.clear for row in found.rows]
    assert texts[0][-1] == ""  # clean is the same in both
    assert "* significant: the 95 % interval excludes 0" in found.remarks


def test_without_draws_nothing_is_clear(detection: RunRecord, firmer: RunRecord) -> None:
    plain = diff_runs(detection, firmer, draws=0)
    assert plain.to_dict()["interval"] is None
    assert not any(row.clear for row in plain.rows)
    assert plain.remarks == ()


@pytest.mark.parametrize("task", ["recognition", "frames"])
def test_other_tasks(task: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    first: RunRecord = request.getfixturevalue(task)
    videos = 40 if task == "recognition" else 20
    second = RunRecord.read(made_run(tmp_path / "firm", task, videos=videos, weakness=0.2, model="firm"))
    made = diff_runs(first, second, draws=50)
    assert made.videos == videos
    assert made.comparison.corrupted.clear
    for row in made.comparison.cells:
        assert row.one == pytest.approx(first.values[row.what])
        assert row.other == pytest.approx(second.values[row.what])


def test_only_shared_cells_are_compared(detection: RunRecord, tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", model="other")
    (folder / "predictions" / "thumos14-c-motion_blur-3.json").unlink()
    less = RunRecord.read(folder)
    made = diff_runs(detection, less, draws=0)
    assert [row.what for row in made.comparison.cells] == list(CELLS[:3])
    assert made.counted == 3
    assert made.first.cells_alone == (CELLS[3],)
    assert made.remarks == (
        f"left out, as only guesser has them: 1 of the cells ({CELLS[3]})",
        "the means are over 3 of the benchmark's 4 cells",
    )
    assert made.comparison.corrupted.one == pytest.approx(sum(detection.values[cell] for cell in CELLS[:3]) / 3)


@pytest.mark.fault("F48")
def test_F48_another_ground_truth_is_refused_unless_told(detection: RunRecord, tmp_path: Path) -> None:
    fewer = RunRecord.read(made_run(tmp_path / "fewer", videos=11))
    with pytest.raises(Incomparable, match="different ground truths") as caught:
        diff_runs(detection, fewer, draws=0)
    assert caught.value.exit_code == 6
    assert caught.value.fault == "F48"
    assert "--any-truth" in caught.value.__notes__[0]
    made = diff_runs(detection, fewer, draws=0, any_truth=True)
    assert made.videos == 11
    assert not made.same_truth
    assert "different ground truths" in made.remarks[0]
    assert "left out, as only run has processed them: 1 of the videos" in made.remarks


@pytest.mark.fault("F48")
def test_F48_another_benchmark_is_refused_even_if_told(detection: RunRecord, recognition: RunRecord) -> None:
    with pytest.raises(Incomparable, match="different benchmarks") as caught:
        diff_runs(detection, recognition, any_truth=True)
    assert not getattr(caught.value, "__notes__", [])


def test_one_recipe_on_other_data_is_compared_when_told(recognition: RunRecord, tmp_path: Path) -> None:
    other = RunRecord.read(made_run(tmp_path / "run", "recognition", videos=9, weakness=0.9, on="shifted"))
    with pytest.raises(Incomparable, match="different benchmarks") as caught:
        diff_runs(recognition, other)
    assert "--any-data" in caught.value.__notes__[0]
    made = diff_runs(recognition, other, draws=200, any_data=True)
    clean = made.comparison.clean
    assert (clean.one, clean.other) == (recognition.values["clean"], other.values["clean"])
    assert clean.difference.value == clean.other - clean.one
    one, two = (survey(record, draws=200).drawn[:, 1] for record in (recognition, other))
    assert (
        made.comparison.cells[0].difference.interval
        == estimate(made.comparison.cells[0].difference.value, two - one).interval
    )
    # Of two independent means the variances add up.
    assert np.var(two - one) == pytest.approx(np.var(one) + np.var(two), rel=0.3)
    assert (made.paired, made.videos, made.to_dict()["paired"]) == (False, 9, False)
    assert "each measured on its own" in made.remarks[0]
    assert f"{100 * clean.other / clean.one:.1f} % of the clean score" in made.remarks[1]
    assert not any("left out" in remark for remark in made.remarks)


def test_other_recipes_are_refused_on_any_data(detection: RunRecord, recognition: RunRecord) -> None:
    with pytest.raises(Incomparable, match="different recipes"):
        diff_runs(detection, recognition, any_data=True)


def test_other_seeds_are_said(detection: RunRecord) -> None:
    other = replace(detection, about=replace(detection.about, seed=3, model="other"))
    assert "seeds 0 and 3" in " ".join(diff_runs(detection, other, draws=0).remarks)


def test_names_tell_runs_apart(detection: RunRecord, firmer: RunRecord) -> None:
    elsewhere = replace(detection, folder=detection.folder / ".." / "aside")
    assert run_names([detection, firmer]) == ["guesser", "firmer"]
    assert run_names([detection, elsewhere]) == ["run", "aside"]
    assert run_names([detection, detection]) == ["run (1)", "run (2)"]


def test_a_diff_and_a_run_show_themselves(detection: RunRecord, firmer: RunRecord, tmp_path: Path) -> None:
    found = diff_runs(detection, firmer, draws=20)
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + len(found.rows)
    assert "firmer less guesser" in html
    data = json.loads((detection.folder / "scores.json").read_text(encoding="utf-8"))
    cost = Cost()
    run = Run(detection.folder, data | {"model": "<i>m</i>"}, (), cost, cost)
    assert "&lt;i&gt;m&lt;/i&gt;; 12 of 12 videos" in run._repr_html_()
    assert "<details>" in run._repr_html_()
    pytest.importorskip("pandas", reason="pandas is not installed: pip install 'jostle[notebook]'")
    assert found.to_frame()["cell"].tolist() == [row.what for row in found.rows]
    assert run.to_frame()["value"].tolist() == [data["clean"], *(cell["value"] for cell in data["cells"])]
