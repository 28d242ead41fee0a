"""Contract of every result: its JSON, and its tables in each form, whatever names of strangers are in it."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.synthetic_runs import write_run
from jostle.api.collection import Collection
from jostle.api.demonstration import Demo, VideoDemo
from jostle.api.installation import Health, InstallationCheck
from jostle.api.streams import WatchState
from jostle.cli import console
from jostle.core.formatting import escape
from jostle.core.results import Result, Written, plain
from jostle.core.tables import MAX_ROWS, Column, Table
from jostle.core.timing import StageTimes
from jostle.core.types.boxes import Boxes
from jostle.core.types.inspection import Inspection
from jostle.core.types.language import (
    AnswerSet,
    MomentItem,
    MomentPrediction,
    MomentPredictions,
    MomentSet,
    QuestionAnswer,
    QuestionItem,
    QuestionSet,
)
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.corruptions.engine.video import CorruptedVideo
from jostle.datasets.dataset import Dataset, FileCounts
from jostle.datasets.videos import CheckedData
from jostle.errors import BadValue, MissingExtra
from jostle.evaluation.inference.jobs import VideoAdaptation
from jostle.evaluation.probing.probe import ComparedProbe, ItemBreakingPoint, Probe
from jostle.evaluation.recipes.building import BuildCheck, BuildPlan, BuildResult
from jostle.evaluation.results.detections import DetectedActions
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.journal import WorkDone
from jostle.evaluation.runner.estimate import TimeEstimate, WorkEstimate
from jostle.evaluation.runner.verification import RunCheck
from jostle.features.extraction import Cost
from jostle.features.folder import ExtractionSummary
from jostle.io.files.annotations import Conversion
from jostle.mending.collection import InspectedFile
from jostle.mending.repair import MendedVideo
from jostle.metrics.accuracy import Accuracy, top_k_accuracy
from jostle.metrics.answers import compare_answers, score_answers, temporal_sensitivity
from jostle.metrics.box_stability import BoxStability, box_stability
from jostle.metrics.breaking_points import compare_breaking_points
from jostle.metrics.diagnosis.comparison import compare_diagnoses
from jostle.metrics.moments import score_moments
from jostle.metrics.pm_k import pm_k
from jostle.metrics.proposals import average_recall
from jostle.metrics.robustness import mean_corruption_error
from jostle.metrics.side_by_side import AnsweredFiles, DiagnosedFiles, MomentFiles, ScoredFiles
from jostle.metrics.video_classification import video_classification
from jostle.models.onnx_export import OnnxFile
from jostle.models.preprocessing.transforms import PreparationDifference
from jostle.reporting.analysis.literature import Literature
from jostle.reporting.analysis.many_runs import Many
from jostle.reporting.analysis.stability import Stabilities, Stability
from jostle.reporting.published.table import published_models
from jostle.training.loop import TrainingResult

HOSTILE = "=<img src=x>\n\x1b[31m|%{"
NAMES = (HOSTILE, "turn")
SOURCES = Path(jostle.__file__).parent


def detections(shift: float) -> tuple[Truth, Predictions]:
    """Six videos with an action of each of two classes, and detections that are late by up to five `shift`s."""
    videos = [f"v{i}" for i in range(6)]
    truth = {name: Segments([1.0, 5.0], [3.0, 8.0], [0, 1], classes=NAMES) for name in videos}
    found = {
        name: Segments([1.0 + i * shift, 5.0], [3.0, 8.0], [0, 1], [0.9, 0.8], NAMES) for i, name in enumerate(videos)
    }
    return Truth.from_segments(truth), Predictions.from_segments(found)


@cache
def scores() -> list[Any]:
    pairs = [detections(shift) for shift in (0.1, 0.3)]
    return [jostle.score(found, truth, bootstrap=20) for truth, found in pairs]


@cache
def diagnoses() -> list[Any]:
    return [jostle.diagnose(found, truth) for truth, found in (detections(0.1), detections(0.3))]


SETS = {"a/1": ["a/2"], "b/1": ["b/2"]}
FRAMES = ("a/1", "a/2", "b/1", "b/2")


def stable_boxes() -> BoxStability:
    truth = {frame: Boxes([[0, 0, 10, 10]], [0]) for frame in FRAMES}
    found = {frame: Boxes([[0, 0, 10, 10]], [0], [0.9]) for frame in FRAMES}
    return box_stability(found, truth, SETS, 1, classes=1, of_classes=2)


@cache
def answers() -> tuple[QuestionSet, AnswerSet, AnswerSet]:
    items = [QuestionItem(f"q{i}", f"v{i // 2}", "Q?", NAMES, i % 2, HOSTILE, needs_order=i > 3) for i in range(8)]
    first = {item.id: QuestionAnswer(item.answer, probabilities=(0.5, 0.5)) for item in items[:6]}
    second = first | {"q0": QuestionAnswer(1), "q7": QuestionAnswer(None)}
    return QuestionSet(tuple(items)), AnswerSet(first), AnswerSet(second)


@cache
def windows() -> Any:
    items = tuple(MomentItem(f"m{i}", f"v{i // 2}", HOSTILE, ((4.0, 8.0 + 20 * (i % 2)),)) for i in range(4))
    found = {item.id: MomentPrediction(((4.0, 7.0, 0.9),)) for item in items[:3]}
    return score_moments(MomentPredictions(found), MomentSet(items))


def classes_of_videos() -> Any:
    truth = VideoLabels(("a", "b"), NAMES, [0, 0, 1], [0, 1, 1])
    return video_classification(VideoLabels(("a", "b"), NAMES, [0, 1, 1], [0, 1, 0], [0.9, 0.8, 0.3]), truth)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    return {
        "first": write_run(root / "first", classes=NAMES),
        "second": write_run(root / "second", model=HOSTILE, weakness=0.3, classes=NAMES),
        "before": write_run(root / "before", "recognition", classes=NAMES),
        "shifted": write_run(root / "shifted", "recognition", weakness=0.3, classes=NAMES),
    }


def grouped_diff(runs: dict[str, Path]) -> Any:
    groups = runs["before"].parent / "groups.csv"
    groups.write_text(f'video,category\nvideo_0000,"{HOSTILE}"\nvideo_0001,b\n', encoding="utf-8")
    return jostle.diff(runs["before"], runs["shifted"], draws=20, by=groups)


@cache
def probe() -> Probe:
    points = [("v0", 0, 4, (2, 4)), ("v0", 1, None, (8, None)), ("v1", 0, 1, (0, 1))]
    items = tuple(
        ItemBreakingPoint(video, item, HOSTILE, "fog", frames, 0, 1, bracket, True, 20)
        for video, item, frames, bracket in points
    )
    kinds = {"fog": (1, 2), HOSTILE: (3,)}
    return Probe(1, HOSTILE, HOSTILE, "detection", HOSTILE, 0.5, kinds, 2, 0, 2, 4, 3, 9, items, {HOSTILE: HOSTILE})


def inspected() -> Inspection:
    kinds = np.array(["clean", HOSTILE, "x"])
    return Inspection(np.array([0.1, 0.9, 0.8]), 0.5, np.arange(3.0), Fraction(1), False, HOSTILE, "", kinds)


def several(runs: dict[str, Path]) -> Many:
    return Many({HOSTILE: finished(runs)}, {"other": HOSTILE})


def finished(runs: dict[str, Path]) -> Run:
    scores = json.loads((runs["second"] / "scores.json").read_text(encoding="utf-8"))
    work = WorkDone(8, 2, 42.0, 10.0, 60.0, 4.0, 0.1, "corrupting")
    passes = VideoAdaptation(2, 4, 2)
    return Run(runs["second"], scores | {"mend": HOSTILE}, (), Cost(), Cost(), work, HOSTILE, adaptation=passes)


def checked_data() -> CheckedData:
    data = Dataset(HOSTILE, "test", Path(HOSTILE), detections(0.1)[:1], {})
    return CheckedData(data, (HOSTILE,))


def demo(runs: dict[str, Path]) -> Demo:
    scores = finished(runs).scores
    return Demo(Path(HOSTILE), Path("clip"), None, {"clean": Path(HOSTILE)}, {"clean": scores, "robust": scores})


def exported(runs: dict[str, Path]) -> OnnxFile:
    return OnnxFile(runs["first"] / "run.json", {HOSTILE: (1, "time")}, (HOSTILE,), None)


def collection() -> Collection:
    files = (
        InspectedFile(HOSTILE, (0, 0), frames=9, damaged=3, events=1, kinds={"black": 3}),
        InspectedFile("b", (0, 0), error=HOSTILE),
    )
    return Collection(files, Path(HOSTILE), None, HOSTILE, (HOSTILE,))


def health() -> Health:
    check = InstallationCheck(HOSTILE, False, HOSTILE)
    return Health({"jostle": "1"}, {"numpy": None}, {}, {HOSTILE: HOSTILE}, {"ffv1": True}, {}, (check,))


Runs = dict[str, Path]
RESULTS: dict[str, Callable[[Runs], Result]] = {
    "Accuracy": lambda _: top_k_accuracy([[0.1, 0.9], [0.6, 0.4]], [1, 1]),
    "AnswerChange": lambda _: compare_answers(*answers()[1:], answers()[0]),
    "AnswerScore": lambda _: score_answers(answers()[1], answers()[0]),
    "AnsweredFiles": lambda _: AnsweredFiles(
        NAMES,
        [score_answers(one, answers()[0]) for one in answers()[1:]],
        compare_answers(*answers()[1:], answers()[0]),
    ),
    "BoxStability": lambda _: stable_boxes(),
    "BuildCheck": lambda _: BuildCheck(Path(HOSTILE), 1, 2, (HOSTILE,), ()),
    "BuildPlan": lambda _: BuildPlan((), 12345),
    "BuildResult": lambda _: BuildResult(Path(HOSTILE), FileCounts(1, 2, 3), {HOSTILE: HOSTILE}, (HOSTILE,)),
    "Change": lambda _: compare_diagnoses(*diagnoses()),
    "Check": lambda runs: jostle.check(runs["first"], runs["second"], draws=400),
    "CheckedData": lambda _: checked_data(),
    "ClassificationScore": lambda _: classes_of_videos(),
    "Collection": lambda _: collection(),
    "ComparedProbe": lambda _: ComparedProbe(
        probe(), {HOSTILE: compare_breaking_points(["a", "b"], [1, 4], [2, None])}
    ),
    "Comparison": lambda _: jostle.compare(*scores(), bootstrap=20),
    "Conversion": lambda _: Conversion(Path(HOSTILE), "truth", "csv", "json", 3, {HOSTILE: 1}, (HOSTILE,)),
    "CorruptedVideo": lambda _: CorruptedVideo(Path(HOSTILE), 9, 3, False, ((0.5, 1.0),), (HOSTILE,)),
    "CorruptionError": lambda _: mean_corruption_error({"fog:1": 0.2}, {"fog:1": 0.4}, name=HOSTILE),
    "Demo": demo,
    "DetectedActions": lambda _: DetectedActions(detections(0.1)[1], None, 8, HOSTILE, {HOSTILE: (1, 2)}),
    "Diagnosis": lambda _: diagnoses()[0],
    "DiagnosedFiles": lambda _: DiagnosedFiles(NAMES, diagnoses(), compare_diagnoses(*diagnoses())),
    "ExtractionSummary": lambda _: ExtractionSummary(
        Path(HOSTILE), (HOSTILE,), (), {HOSTILE: HOSTILE}, (HOSTILE,), Cost(1, 2, 3, 4)
    ),
    "Health": lambda _: health(),
    "Inspection": lambda _: inspected(),
    "Literature": lambda _: Literature(HOSTILE, published_models("thumos14-c"), False, (HOSTILE,)),
    "Many": several,
    "MendedVideo": lambda _: MendedVideo(Path(HOSTILE), 9, 3, True, (HOSTILE,), 1, 2, "hold"),
    "MomentFiles": lambda _: MomentFiles(NAMES, [windows(), windows()]),
    "MomentScore": lambda _: windows(),
    "OnnxFile": exported,
    "PmK": lambda _: pm_k({"a/1": 0, "a/2": 1, "b/1": 0, "b/2": 0}, SETS, {frame: [0] for frame in FRAMES}, 1),
    "PmKDetection": lambda _: stable_boxes().detection,
    "PreparationDifference": lambda _: PreparationDifference(((4, 4), (4, 4)), 2.0, 1.0, 0.5, {HOSTILE: 1}),
    "Probe": lambda _: probe(),
    "ProposalScore": lambda _: average_recall(detections(0.1)[1], detections(0.1)[0]),
    "PublishedTable": lambda _: jostle.published("thumos14-c/table-1"),
    "Robustness": lambda _: jostle.robustness(80.0, {f"{HOSTILE}:1": 40.0, f"{HOSTILE}:2": None}),
    "Run": finished,
    "RunCheck": lambda _: RunCheck(Path(HOSTILE), (HOSTILE,), 1, 2, (HOSTILE,), (HOSTILE,)),
    "RunDiff": grouped_diff,
    "Score": lambda _: scores()[0],
    "ScoredFiles": lambda _: ScoredFiles(NAMES, scores(), jostle.compare(*scores(), bootstrap=20), HOSTILE, True),
    "Stabilities": lambda _: Stabilities(
        HOSTILE, 3, 9, (Stability(HOSTILE, 0.5, 0.4, (0.1, 0.9)),), (), (HOSTILE,), HOSTILE
    ),
    "TemporalSensitivity": lambda _: temporal_sensitivity(*answers()[1:], answers()[0]),
    "TrainingResult": lambda _: TrainingResult(Path("run"), Path(HOSTILE), 0.5, 1, 2, 3, HOSTILE, 1.0, 0.5),
    "VideoDemo": lambda _: VideoDemo(Path(HOSTILE), Path(HOSTILE), {HOSTILE: 1.5}),
    "WatchState": lambda _: WatchState(HOSTILE, 9, 3, Counter({HOSTILE: 3}), Counter({HOSTILE: 1})),
    "WorkEstimate": lambda _: WorkEstimate(
        (HOSTILE,), 3, 6, (HOSTILE,), 90, 2, TimeEstimate(2, 10.0, 5, 9.0, 18.0, 1000, StageTimes(), "model")
    ),
    "Written": lambda _: Written({"out": Path(HOSTILE)}, (Path(HOSTILE),), (HOSTILE,)),
}


@pytest.fixture(params=sorted(RESULTS))
def result(request: pytest.FixtureRequest, runs: Runs) -> Result:
    made = RESULTS[request.param](runs)
    assert type(made).__name__ == request.param
    return made


class Frame(dict[str, list[Any]]):
    """Stand-in for a data frame, which needs no pandas."""


@pytest.fixture
def pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=Frame))


def test_every_result_is_here() -> None:
    pattern = re.compile(r"^class (\w+)\((?:\w+, )*(?:Result|_SideBySide)\)", re.MULTILINE)
    found = {name for path in SOURCES.rglob("*.py") for name in pattern.findall(path.read_text(encoding="utf-8"))}
    assert {name for name in found if not name.startswith("_")} == set(RESULTS)


def test_json_survives_a_round_trip(result: Result) -> None:
    content = result.to_dict()
    assert content.get("format", content.get("version")) in (1, "1")  # ActivityNet's own layout has a version
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    inner = plain({"inner": result})["inner"]
    assert inner == {key: value for key, value in content.items() if key != "format"}


def test_tables_in_every_form(result: Result, pandas: None) -> None:
    for table in result.tables():
        count = len(table.rows)
        assert len(list(filter(None, table.text().split("\n")))) == (
            bool(table.title) + bool(count) + count + len(table.notes)
        )
        rows = list(csv.reader(io.StringIO(table.csv(), newline="")))
        assert len(rows) == 1 + count
        assert len({len(row) for row in rows}) == 1
        assert len(table.markdown().split("\n")) == 2 + count
        assert table.latex().count(r" \\") == 1 + count
        assert table.html().count("<tr>") == 1 + min(count, MAX_ROWS)
        assert {len(values) for values in table.frame().values()} == {count}
    if result.tables():
        assert result.to_frame()


def test_names_of_strangers_stay_names(result: Result) -> None:
    html = result._repr_html_()
    assert "<img" not in html
    assert html.count("<table") == html.count("</table>") == len(result.tables() or [0])
    for table in result.tables():
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", table.text())
        cells = [cell for row in csv.reader(io.StringIO(table.csv(), newline="")) for cell in row]
        assert not [cell for cell in cells if re.match(r"\s*[=@|%]", cell) or re.match(r"\s*[+-](?![\d.]+$)", cell)]
        assert "<img" not in table.markdown() + table.latex()


def test_verbs_print_what_results_say(result: Result, capsys: pytest.CaptureFixture[str]) -> None:
    console.give(result)
    output = capsys.readouterr()
    paths = [escape(str(path)) for path in result.written()]
    tables = "\n\n".join(filter(None, (table.text() for table in result.tables())))
    assert output.out.splitlines() == [*tables.split("\n"), *paths][not tables :]
    assert output.err.splitlines() == [escape(note) for note in result.notes()]
    console.give(result, as_json=True)
    assert json.loads(capsys.readouterr().out) == result.to_dict()


def test_columns_of_data_frames(pandas: None, runs: Runs) -> None:
    score, diagnosis = scores()[0], diagnoses()[0]
    assert list(score.to_frame()) == ["tiou", "map", *NAMES]
    assert score.to_frame()["map"].tolist() == score.map.tolist()
    assert diagnosis.to_frame()["split"] == list(range(1, 11))
    stable = pm_k({"a/1": 0, "a/2": 1, "b/1": 0, "b/2": 0}, SETS, {frame: [0] for frame in FRAMES}, 1)
    assert stable.to_frame() == {"offset": [1], "error": [0.5]}
    diff, run = jostle.diff(runs["first"], runs["second"], draws=20), finished(runs)
    assert diff.to_frame()["cell"] == [row.what for row in diff.rows]
    values = [cell["value"] for cell in run.scores["cells"]]
    assert run.to_frame()["value"] == [run.scores["clean"], *values]
    truth, found = detections(0.1)
    assert list(truth.actions["v0"].to_frame()) == ["start", "end", "label"]
    assert {len(values) for values in found.to_frame().values()} == {12}
    assert truth.to_frame()["label"].tolist()[:2] == [HOSTILE, "turn"]
    table = Table("", (Column("95 %", "interval", key="mean"),), (((0.1, 0.2),), (None,)))
    assert table.frame() == {"mean low": [0.1, None], "mean high": [0.2, None]}


def test_missing_pandas_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for one in (scores()[0], diagnoses()[0], detections(0.1)[1]):
        with pytest.raises(MissingExtra, match=r"pandas.*pip install 'jostle\[notebook\]'"):
            one.to_frame()


def test_empty_results(pandas: None) -> None:
    table = Table("", (Column("name"), Column("share", "percent")), ())
    assert table.text() == ""
    assert table.csv() == "name,share (%)\n"
    assert table.latex().count(r"\\") == 1
    assert table.frame() == {"name": [], "share": []}
    assert table.html(folded=True).startswith("<details><summary>0 rows</summary>")

    class Nothing(Result):
        pass

    assert "Nothing" in Nothing()._repr_html_()
    with pytest.raises(BadValue, match="has no table"):
        Nothing().to_frame()
    alone = Accuracy(1, 1, 1, 1.0, None)
    assert alone.to_dict()["interval"] is None
    assert alone.tables()[0].texts() == [["top-1 accuracy", "100.00", "n/a"]]


def test_long_tables_are_truncated_in_notebooks() -> None:
    html = Table("t", (Column("a"),), (("x",),) * 1000).html()
    assert html.count("<tr>") == 61
    assert "940 more rows" in html


def test_values_of_numpy_become_plain() -> None:
    value = plain({1: np.float64(0.5), "a": (np.arange(2), Path("b"))})
    assert value == {"1": 0.5, "a": [[0, 1], "b"]}
    assert type(value["1"]) is float


def test_colours_follow_marks_and_decisions() -> None:
    columns = (Column("what"), Column("change", "points"), Column("", "mark"))
    table = Table("", columns, (("a", 0.1, True), ("b", -0.1, True), ("c", 0.1, False)))
    assert table.tones() == ["good", "bad", ""]
    assert Table("", (Column("", "decision"),), (("pass",), ("fail",), ("undecided",))).tones() == ["good", "bad", ""]
    painted = table.text(lambda line, tone: f"{tone}:{line}").split("\n")
    assert [line.partition(":")[0] for line in painted[1:]] == ["good", "bad", ""]
