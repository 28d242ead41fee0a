"""Exported records of runs: a few kilobytes that agree with the run and are refused after any change."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.synthetic_runs import write_run
from jostle.datasets.dataset import datasets
from jostle.errors import DataError, Tampered
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run
from jostle.evaluation.run_folder.metadata import Content
from jostle.evaluation.run_folder.scores import Counted, Coverage
from jostle.reporting.analysis.leaderboard import boards_of, label_corruptions
from jostle.reporting.analysis.summary import CellNumber, Number, _checksum, read_summary, summary_of, write_summary


@pytest.fixture
def record(detection: RunRecord, tmp_path: Path) -> Path:
    return jostle.export_run(detection.folder, tmp_path / "run.json", draws=40)


def changed(path: Path, change: Callable[[Any], object], *, checksum: bool = True) -> Path:
    """Return a copy of a record after a change, with a new checksum or the old one."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    change(plain["record"])
    if checksum:
        plain["checksum"] = _checksum(plain["record"])
    copy = path.with_name("changed.json")
    copy.write_text(json.dumps(plain), encoding="utf-8")
    return copy


def sets(*keys: Any, to: Any) -> Callable[[Any], None]:
    """Return a change of one value of a record."""

    def change(record: Any) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = to

    return change


def test_summary_agrees_with_the_run(detection: RunRecord, record: Path) -> None:
    summary = read_summary(record)
    assert record.stat().st_size < 10_000
    assert summary.clean.value == detection.scores.clean
    assert summary.corrupted.value == pytest.approx(detection.scores.mean_corrupted, abs=1e-12)
    assert summary.relative.value == pytest.approx(detection.scores.relative_robustness, abs=1e-12)
    assert summary.corrupted.interval is not None
    assert (summary.facts.model, summary.facts.weights, summary.facts.truth) == (
        "guesser",
        detection.about.weights,
        detection.about.truth,
    )
    assert summary.coverage_text == "12 of 12 videos, 4 of 4 cells"
    black = [detection.values[f"thumos14-c/black_frame:{severity}"] for severity in (1, 3)]
    assert summary.by_corruption["thumos14-c/black_frame"] == pytest.approx(math.fsum(black) / 2)
    assert str(detection.folder) not in record.read_text(encoding="utf-8")


def test_record_round_trip(record: Path, tmp_path: Path) -> None:
    write_summary(read_summary(record), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == record.read_bytes()
    laid_out = json.dumps(json.loads(record.read_text(encoding="utf-8")), indent=8)
    (tmp_path / "other.json").write_text(laid_out, encoding="utf-8")
    assert read_summary(tmp_path / "other.json") == read_summary(record)


def without_cells(record: Any) -> None:
    record["cells"] = []
    record["counted"] = {"cells": 0, "of": 4}
    record["corrupted"]["value"] = record["relative"]["value"] = 0.99


def one_cell(times: int) -> Callable[[Any], None]:
    """Keep the best cell only, with means that fit."""

    def change(record: Any) -> None:
        best = max(record["cells"], key=lambda one: one["value"])
        record["cells"] = [best] * times
        record["counted"] = {"cells": times, "of": times}
        record["corrupted"]["value"] = best["value"]
        record["relative"]["value"] = best["value"] / record["clean"]["value"]

    return change


@pytest.mark.fault("F118")
@pytest.mark.parametrize(
    "change",
    [
        sets("clean", "value", to=0.99),
        sets("facts", "model", to="mine"),
        sets("cells", 0, "value", to=0.9),
        sets("coverage", "videos", to=11),
    ],
)
def test_F118_a_changed_record_is_refused(record: Path, change: Any) -> None:
    with pytest.raises(Tampered, match="was changed after it was written") as caught:
        read_summary(changed(record, change, checksum=False))
    assert (caught.value.exit_code, caught.value.fault) == (6, "F118")


@pytest.mark.fault("F118", "F125")
@pytest.mark.parametrize(
    ("change", "message", "fault"),
    [
        (sets("corrupted", "value", to=0.99), "corrupted is 0.99, and its cells have a mean of", "F118"),
        (sets("cells", 0, "value", to=0.99), "corrupted is", "F118"),
        (sets("relative", "value", to=1.0), "relative is 1.0, and the others give", "F118"),
        (sets("relative", "value", to=None), "relative is None, and the others give", "F118"),
        (sets("cells", 0, "value", to=1.5), "at most 1", "F118"),
        (sets("clean", "value", to=500.0), "clean is 500.0, and a score is at most 1", "F118"),
        (sets("clean", "value", to=-0.5), "clean.value is -0.5, not at least 0", "F118"),
        (sets("clean", "interval", to=[0.9, 0.1]), "clean has .* as interval", "F118"),
        (sets("clean", "interval", to=[0.1, 1e308]), "clean has .* as interval", "F118"),
        (sets("coverage", to={"videos": 10**9, "of": 3}), "coverage is 1000000000 of 3 videos", "F118"),
        (sets("counted", to={"cells": 15, "of": 15}), "counted is 15 of 15 cells, and 4 of those listed count", "F118"),
        (sets("cells", to=[]), "counted is 4 of 4 cells, and 0 of those listed count", "F118"),
        (without_cells, "corrupted is 0.99, without cells", "F118"),
        (one_cell(4), "more than once", "F118"),
        (sets("facts", "content", "task", to="guessing"), r"facts.content.task is 'guessing', not one", "F118"),
        (sets("facts", "content", "protocol", to=None), r"facts.content.protocol is missing", "F118"),
        (sets("facts", "content", "k", to=3), r"facts.content.k is for frames, objects, recogn", "F118"),
        (one_cell(1), "counted is out of 1 cells, and the benchmark has 4", "F125"),
        (sets("cells", 0, "cell", to="fog:3"), "the benchmark does not have it", "F125"),
        (lambda record: record["facts"]["content"]["cells"].pop(), "is not that of the benchmark's content", "F125"),
        (lambda record: record["facts"].pop("content"), "this jostle does not know that benchmark", "F125"),
        (sets("facts", "benchmark", to="thumos14-c"), "is 'thumos14-c', and the benchmark has", "F125"),
        (sets("metric", to="top-1 accuracy"), "metric is 'top-1 accuracy'", "F125"),
        (sets("guesses", to=True), "guesses is True, and the clean score says otherwise", "F125"),
    ],
)
def test_F118_F125_a_record_that_contradicts_itself_or_its_recipe_is_refused(
    record: Path, change: Any, message: str, fault: str
) -> None:
    """Its checksum is valid."""
    with pytest.raises(Tampered, match=message) as caught:
        read_summary(changed(record, change))
    assert caught.value.fault == fault


@pytest.mark.fault("F125")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["cells"][0].update(interval=None, value=0.51234), "corrupted is"),
        (lambda record: record["clean"].update(interval=None, value=0.99), "clean is 0.99, which is no number of 40"),
        (sets("chance", to=0.4), "chance is 0.4, which is not 1 of any number of classes"),
        (sets("guesses", to=True), "guesses is True"),
    ],
)
def test_F125_scores_of_a_recogniser_are_counts_of_right_answers(
    recognition: RunRecord, tmp_path: Path, change: Any, message: str
) -> None:
    path = jostle.export_run(recognition.folder, tmp_path / "run.json", draws=100)
    assert read_summary(path).chance == pytest.approx(1 / 3)

    def fitting(record: Any) -> None:
        change(record)
        if message.startswith("clean"):
            record["relative"]["value"] = record["corrupted"]["value"] / record["clean"]["value"]

    with pytest.raises(Tampered, match=message):
        read_summary(changed(path, fitting))


@pytest.mark.fault("F125")
def test_F125_part_of_a_known_benchmark_is_not_complete(recognition: RunRecord, tmp_path: Path) -> None:
    """Records do not contain the recipes of bundled benchmarks."""
    benchmark = benchmarks["ucf101-p"]
    subset, videos = next(iter(datasets["ucf101"].videos.items()))
    counted = [cell.name for cell in benchmark.cells if cell.counted]
    facts = replace(
        recognition.about.facts,
        benchmark=benchmark.name,
        recipe=benchmark.name,
        fingerprint=benchmark.fingerprint,
        content=Content.of(benchmark.content()),
        dataset=benchmark.dataset,
        subset=subset,
    )
    complete = replace(
        summary_of(analyse_run(recognition)),
        facts=facts,
        metric=benchmark.measure,
        cells=tuple(CellNumber(cell, 0.5, None, True) for cell in counted),
        clean=Number(1.0),
        corrupted=Number(0.5),
        relative=Number(0.5),
        counted=Counted(len(counted), len(counted)),
        coverage=Coverage(2 * videos, 2 * videos, 101, 101),
        chance=1 / 101,
    )
    write_summary(complete, tmp_path / "whole.json")
    assert "content" not in json.loads((tmp_path / "whole.json").read_text())["record"]["facts"]
    assert read_summary(tmp_path / "whole.json").whole
    write_summary(replace(complete, coverage=Coverage(12, 12, 3, 101)), tmp_path / "small.json")
    with pytest.raises(Tampered, match=f"coverage is of 12 videos, and ucf101 has {videos}"):
        read_summary(tmp_path / "small.json")


def test_many_corruptions_are_labelled_in_linear_time() -> None:
    names = [f"noise_{i}" for i in range(30_000)]
    before = time.process_time()
    assert len(label_corruptions(names)) == len(names)
    assert time.process_time() - before < 3  # 40 s with a quadratic count


def test_other_json_files_are_refused(detection: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="kind is missing"):
        read_summary(detection.folder / "scores.json")
    (tmp_path / "cut.json").write_text('{"format": 1,', encoding="utf-8")
    with pytest.raises(DataError, match=r"cut\.json"):
        read_summary(tmp_path / "cut.json")


def test_partial_run_is_exported_on_request(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", fails=("video_0003",))
    with pytest.raises(DataError, match=r"on 11 of 12 videos and 4 of 4 cells.*--partial"):
        jostle.export_run(folder, tmp_path / "part.json")
    summary = read_summary(jostle.export_run(folder, tmp_path / "part.json", partial=True, draws=0))
    assert not summary.whole
    assert summary.corrupted.interval is None


def test_summary_of_frame_classifiers(tmp_path: Path) -> None:
    run = RunRecord.read(write_run(tmp_path / "run", "frames", cells=()))
    summary = summary_of(analyse_run(run))
    pm_k = run.scores.clean_more.pm_k
    assert (summary.clean.value, summary.corrupted.value, summary.relative.value) == (pm_k.accuracy, pm_k.pm_k, None)
    assert summary.clean.interval == pm_k.accuracy_interval


@pytest.mark.parametrize("task", ["questions", "moments"])
def test_language_runs_are_ranked_within_their_benchmark(
    task: str, request: pytest.FixtureRequest, recognition: RunRecord, tmp_path: Path
) -> None:
    run: RunRecord = request.getfixturevalue(task)
    path = jostle.export_run(run.folder, tmp_path / "sent.json", draws=200)
    summary = read_summary(path)
    assert (summary.facts.content.task, summary.clean.value) == (task, run.scores.clean)
    assert summary.chance == (pytest.approx(1 / 3) if task == "questions" else None)
    boards = boards_of([path, recognition.folder], draws=10)
    assert [board.runs for board in boards] == [1, 1]
    assert {board.benchmark for board in boards} == {run.about.benchmark, recognition.about.benchmark}


@pytest.mark.fault("F125")
@pytest.mark.parametrize(("key", "value"), [("chance", 0.7), ("guesses", True)])
def test_F125_impossible_chance_of_questions_is_refused(
    key: str, value: Any, questions: RunRecord, tmp_path: Path
) -> None:
    path = jostle.export_run(questions.folder, tmp_path / "run.json", draws=200)
    with pytest.raises(Tampered, match=key) as caught:
        read_summary(changed(path, sets(key, to=value)))
    assert caught.value.fault == "F125"
