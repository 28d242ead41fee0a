"""Contract that every registered metric fulfils, and that metrics of a user's own fulfil for every task."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.synthetic_runs import CELLS, annotations_of, recipe_of, write_run
from jostle.core.types.boxes import Boxes, FrameBoxes
from jostle.core.types.language import AnswerSet, MomentPrediction, MomentPredictions, QuestionAnswer
from jostle.core.types.predictions import Predictions
from jostle.core.types.score_table import ScoreTable
from jostle.core.types.segments import Segments
from jostle.errors import BadValue
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import measure_cell
from jostle.evaluation.results.comparison import chance_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run, processed_videos
from jostle.evaluation.tasks.validation import check_recipe
from jostle.metrics.measured import Measured
from jostle.metrics.metric import Chance, Metric, find_metric, measure, metrics, statistics

GOLDEN = Path(__file__).parents[1] / "golden" / "runs"
CLASSES = ("jump", "run", "sit down")
VIDEOS = 6
CONTRACT = {  # name: label in a synthetic recipe, chance of six videos, whether it has intervals
    "answer_accuracy": ("accuracy", Chance(pytest.approx(1 / 3), None), True),
    "mean_ap": ("mAP@0.3:0.7", Chance(0.0, None), True),
    "moment_map": ("mAP", Chance(0.0, None), True),
    "moment_recall": ("R@1, IoU 0.5", Chance(0.0, None), True),
    "pm_k": ("pm-3", Chance(pytest.approx(1 / 3), 6), True),
    "pm_k_map": ("pm-3 mAP", Chance(0.0, None), True),
    "top_k_accuracy": ("top-1 accuracy", Chance(pytest.approx(1 / 3), 6), True),
    "video_mean_ap": ("video_mean_ap", Chance(0.0, None), False),
}
STATISTICS = ["answer_change", "average_recall", "mce", "robustness", "temporal_sensitivity"]


def perfect(truth: Any, task: str) -> Any:
    """Return predictions that are right everywhere."""
    if task == "detection":
        actions = {name: Segments(own.start, own.end, own.label, np.ones(len(own)), own.classes)
                   for name, own in truth.actions.items()}  # fmt: skip
        return Predictions.from_segments(actions)
    if task == "recognition":
        return ScoreTable(truth.videos, np.eye(len(CLASSES), dtype=np.float32)[truth.label])
    if task == "frames":
        return ScoreTable(truth.frames, np.eye(len(CLASSES))[[truth.labels[frame][0] for frame in truth.frames]])
    if task == "objects":
        found = {frame: Boxes(own.box, own.label, np.ones(len(own))) for frame, own in truth.boxes.items()}
        return FrameBoxes(found, truth.classes)
    if task == "questions":
        return AnswerSet({item.id: QuestionAnswer(item.answer) for item in truth.items})
    windows = {item.id: MomentPrediction(tuple((*window, 1.0) for window in item.windows)) for item in truth.items}
    return MomentPredictions(windows)


def wrong(truth: Any, task: str) -> Any:
    """Return predictions that find nothing; where each video has one, it is of another class."""
    if task == "detection":
        return Predictions((), CLASSES, [], [], [], [], [])
    if task == "recognition":
        return ScoreTable(truth.videos, -np.eye(len(CLASSES), dtype=np.float32)[truth.label])
    if task == "frames":
        return ScoreTable(truth.frames, -np.eye(len(CLASSES))[[truth.labels[frame][0] for frame in truth.frames]])
    if task == "objects":
        return FrameBoxes(dict.fromkeys(truth.boxes, Boxes([], [], [])), truth.classes)
    if task == "questions":
        return AnswerSet({item.id: QuestionAnswer(None) for item in truth.items})
    return MomentPredictions({item.id: MomentPrediction(()) for item in truth.items})


def measured(name: str, make: Any = perfect) -> tuple[Metric, Any, Measured]:
    """Return a metric, annotations of six videos, and what the metric makes of predictions."""
    metric = metrics[name]
    truth = annotations_of(metric.task, VIDEOS, CLASSES)
    recipe = recipe_of(metric.task, metric=name)
    return metric, truth, measure(metric, truth, make(truth, metric.task), recipe)


def test_contract_names_every_metric() -> None:
    own = [name for name in metrics if metrics.part(name) is None]
    assert own == sorted(CONTRACT)
    assert [name for name in statistics if statistics.part(name) is None] == STATISTICS


@pytest.mark.parametrize("name", CONTRACT)
def test_label_chance_and_summary(name: str) -> None:
    metric, truth, result = measured(name)
    recipe = recipe_of(metric.task, metric=name)
    label, chance, intervals = CONTRACT[name]
    assert (recipe.measure, metric.has_intervals) == (label, intervals)
    assert metric.chance(truth, lambda: perfect(truth, metric.task), recipe) == chance
    assert metric.summary.endswith(".")
    assert set(result.by_class) <= set(metric.classes(truth))
    if metric.recorded:
        assert metric.recorded in result.more


@pytest.mark.parametrize("name", CONTRACT)
def test_perfect_predictions_have_the_best_value(name: str) -> None:
    _, truth, result = measured(name)
    assert result.value == 1
    assert set(result.videos) == set(truth.videos)
    assert result.by_video.tolist() == [1] * VIDEOS
    assert set(result.by_class.values()) <= {1.0}
    json.dumps(result.more, allow_nan=False)


@pytest.mark.parametrize("name", CONTRACT)
def test_wrong_predictions_have_the_worst_value(name: str) -> None:
    _, _, result = measured(name, wrong)
    assert result.value == pytest.approx(0, abs=0.34 if name == "video_mean_ap" else 0)  # a ranking is never empty
    assert set(result.by_video.tolist()) == {0}
    json.dumps(result.more, allow_nan=False)


@pytest.mark.parametrize("name", CONTRACT)
def test_draws_weigh_videos(name: str) -> None:
    metric, _, right = measured(name)
    weights = np.array([[1] * (VIDEOS + 1), [2, 0, 1, 3, 0, 0, 2]], np.int16)
    for result in (right, measured(name, wrong)[2]):
        if not metric.has_intervals:
            assert result.drawn(weights) is None
            continue
        drawn, ends = result.drawn(weights)  # type: ignore[misc]
        assert drawn.tolist() == [result.value] * 2
        assert ends is not None
        assert (ends[0] <= drawn).all()
        assert (ends[1] >= drawn).all()
        assert (ends[1] > ends[0]).all()
        assert result.drawn(weights[:, :-1])[1] is None  # type: ignore[index]


@pytest.mark.parametrize("name", CONTRACT)
def test_values_of_classes_are_those_of_each_alone(name: str) -> None:
    _, _, result = measured(name)
    for label, value in result.by_class.items():
        part = result.of_class(label)
        if part is not None:
            assert part.value == value
            assert part.drawn(np.ones((1, VIDEOS), np.int16))[0].tolist() == [value]  # type: ignore[index]


def assert_analysis_is_that_of_the_run(record: RunRecord) -> None:
    """Compare what an analysis measures with scores.json, cell by cell."""
    plain = json.loads((record.folder / "scores.json").read_text())
    stored = {one["cell"]: one for one in plain["cells"] + plain["beside"]} | {
        CLEAN: {"value": plain["clean"]} | plain["clean_more"]
    }
    analysis = analyse_run(record, draws=50)
    assert (plain["metric"], set(analysis.cells)) == (record.metric.label(record.about.content), set(stored))
    for cell, value in zip(analysis.cells, analysis.value, strict=True):
        again = measure_cell(record, cell, processed_videos(record))
        assert again.value == value == stored[cell]["value"]
        more = json.loads(json.dumps(again.more))
        assert {key: stored[cell].get(key) for key in more if key != "chance"} == {
            key: one for key, one in more.items() if key != "chance"
        }
    assert bool(len(analysis.drawn)) == record.metric.has_intervals
    assert chance_of(analysis) == chance_of(record)


@pytest.mark.parametrize("task", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_analysis_of_kept_runs_equals_their_scores(task: str) -> None:
    assert_analysis_is_that_of_the_run(RunRecord.read(GOLDEN / task))


@pytest.mark.parametrize("name", ["moment_map", "video_mean_ap"])
def test_analysis_of_other_metrics_equals_scores(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", metrics[name].task, metric=name, videos=VIDEOS)
    assert_analysis_is_that_of_the_run(RunRecord.read(run))


OWN = """
import json, sys
from pathlib import Path

import helpers.own_metrics
import jostle
from helpers.synthetic_runs import FACTS, annotations_of, names_of, recipe_of, write_run
from test_metrics import assert_analysis_is_that_of_the_run
from jostle.datasets.dataset import Dataset
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.tasks.validation import check_recipe
from jostle.gate.budget import Budget, Condition
from jostle.gate.stopping import make_stopping_rule

root, results = Path(sys.argv[1]), {}
for task in FACTS:
    check_recipe(recipe_of(task, metric=f"own_{task}"))
    run = write_run(root / task, task, metric=f"own_{task}", videos=24, weakness=0.5)
    assert_analysis_is_that_of_the_run(RunRecord.read(run))
    scores = json.loads((run / "scores.json").read_text())
    page = jostle.report(run, out=root / f"{task}.html", draws=50).read_text()
    budget = {"condition": [{"metric": "clean", "at_least": 0.01}, {"metric": "mean_corrupted", "at_least": 1.0}]}
    conditions = jostle.check(run, budget=budget).conditions
    assert jostle.diff(run, run, draws=20).to_dict()["metric"] == scores["metric"]
    jostle.board([run], root / f"board_{task}", draws=20)
    board = json.loads((root / f"board_{task}" / "board.json").read_text())["boards"][0]
    results[task] = {
        "metric": scores["metric"],
        "clean": scores["clean"],
        "mean": scores["mean_corrupted"],
        "on page": f"{100 * scores['clean']:.2f}" in page and scores["metric"] in page,
        "board": board["metric"],
        "board value": board["tables"][0]["rows"][0]["clean"]["value"],
        "decisions": [one.decision for one in conditions],
        "values": [one.value for one in conditions],
        "reason": conditions[0].reason,
    }
for task, method in (("recognition", "bets"), ("detection", "planned looks")):
    recipe, names = recipe_of(task, metric=f"own_{task}"), names_of(120)
    data = Dataset("folder", "test", root, (annotations_of(task, 120, ("jump", "run", "sit down")),),
                   dict.fromkeys(names, root / "videos" / "video_0000.mp4"))
    rule = make_stopping_rule(recipe, data, recipe.cells[1:], Budget((Condition("clean", at_least=0.1),)))
    run = write_run(root / f"early_{task}", task, metric=f"own_{task}", videos=120, stopping=rule)
    assert 0 < RunRecord.read(run).scores.coverage.videos < 120
    one = jostle.check(run, budget={"condition": [{"metric": "clean", "at_least": 0.1}]}).conditions[0]
    assert one.decision == "pass" and method in one.method, one
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Runs of every task by a metric of its own, in a process of their own: registered parts stay registered."""
    root = tmp_path_factory.mktemp("own")
    tests = Path(__file__).parents[1]
    code = f"import sys; sys.path[:0] = [{str(tests)!r}, {str(Path(__file__).parent)!r}]\n{OWN}"
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return root, json.loads(done.stdout.splitlines()[-1])


TASKS = ("detection", "recognition", "frames", "objects", "questions", "moments")


@pytest.mark.parametrize("task", TASKS)
def test_own_metric_is_measured_everywhere(own: tuple[Path, dict[str, dict[str, Any]]], task: str) -> None:
    found = own[1][task]
    label = "detected by thumos14" if task == "detection" else f"own_{task}"
    assert (found["metric"], found["board"], found["on page"]) == (label, label, True)
    assert found["board value"] == found["clean"]
    assert found["values"] == [found["clean"], pytest.approx(found["mean"])]


@pytest.mark.parametrize("task", TASKS)
def test_own_metric_is_decided_if_it_has_intervals(own: tuple[Path, dict[str, dict[str, Any]]], task: str) -> None:
    found = own[1][task]
    if task in ("detection", "recognition"):
        assert found["decisions"][0] == "pass"
        assert found["decisions"][1] != "pass"
    else:
        assert found["decisions"] == ["undecided"] * 2
        assert "no intervals" in found["reason"]


@pytest.mark.parametrize("task", TASKS)
def test_process_without_the_metric_replaces_it_by_nothing(
    own: tuple[Path, dict[str, dict[str, Any]]], task: str
) -> None:
    record = RunRecord.read(own[0] / task)
    analysis = analyse_run(record, draws=20)
    assert analysis.of(CLEAN).value == own[1][task]["clean"]
    assert analysis.of(CLEAN).interval is None
    assert not len(analysis.drawn)
    part = analyse_run(record, videos=processed_videos(record)[:3])
    assert np.isnan(part.value).all()


class Failing(Metric):
    """Metric that fails."""

    name, task = "failing", "detection"

    def measure(self, truth: Any, predictions: Any, options: Any) -> Measured:
        if truth is None:
            return 0.5  # type: ignore[return-value]
        return Measured(1 / truth)


def test_failures_of_own_metrics_are_named() -> None:
    with pytest.raises(BadValue, match=r"metric failing failed \(ZeroDivisionError"):
        measure(Failing(), 0, None, recipe_of("detection"))
    with pytest.raises(BadValue, match=r"metric failing returned 0\.5"):
        measure(Failing(), None, None, recipe_of("detection"))


@pytest.mark.parametrize("name", ["temporal_sensitivity", "answer_change"])
def test_statistics_are_no_metrics_of_benchmarks(name: str) -> None:
    with pytest.raises(BadValue, match=f"scored by answer_accuracy, and {name} would be replaced"):
        check_recipe(recipe_of("questions", CELLS, metric=name))
    assert find_metric(name).measure(None, None, recipe_of("questions")).by_class == {}
