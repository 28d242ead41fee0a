"""Results of one or two files of predictions: names, rows and agreement with the objects."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.synthetic_runs import write_run
from jostle.core.tables import joined
from jostle.errors import BadValue
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.side_by_side import DiagnosedFiles, ScoredFiles, file_names


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any]]:
    detection = RunRecord.read(write_run(tmp_path_factory.mktemp("made") / "run"))
    names = ("clean", "thumos14-c/black_frame:3")
    return detection.annotations, [detection.predictions(name) for name in names]


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_scores_table(files: tuple[Any, list[Any]]) -> None:
    truth, predictions = files
    scores = [jostle.score(one, truth, protocol="thumos14", bootstrap=50) for one in predictions]
    comparison = jostle.compare(*scores, bootstrap=50)
    table = joined(ScoredFiles(["a", "b"], scores, comparison, per_class=True).tables())
    lines = rows(table.csv())
    assert lines[0] == ["", "a (%)", "b (%)", "change (points)", "95 % low (%)", "95 % high (%)"]
    assert [row[0] for row in lines[1:]][:2] == ["mAP at tIoU 0.3", "mAP at tIoU 0.4"]
    average = next(row for row in lines if row[0] == "average mAP")
    assert float(average[3]) == pytest.approx(100 * comparison.average_map)
    assert float(average[4]) == pytest.approx(100 * comparison.interval.average_map[0])
    assert {row[0] for row in lines[-3:]} == {"AP of jump", "AP of run", "AP of sit down"}
    alone = joined(ScoredFiles(["a"], scores[:1]).tables())
    assert rows(alone.csv())[0] == ["", "a (%)", "95 % low (%)", "95 % high (%)"]
    assert alone.latex().count(r"\\") == 1 + 5 + 1


def test_diagnosis_table(files: tuple[Any, list[Any]]) -> None:
    truth, predictions = files
    results = [jostle.diagnose(one, truth) for one in predictions]
    diagnoses = [one.to_dict() for one in results]
    table = {str(row[0]): row for row in joined(DiagnosedFiles(["a", "b"], results).tables()).rows}
    assert table["missed instances"][1:3] == tuple(one["false_negatives"]["overall"] for one in diagnoses)
    assert table["cost of localization"][3] == pytest.approx(
        diagnoses[1]["false_positives"]["impact"]["localization"]
        - diagnoses[0]["false_positives"]["impact"]["localization"]
    )
    buckets = {f"mAP_N, num-instances {bucket}" for bucket in diagnoses[0]["sensitivity"]["num-instances"]}
    assert buckets < set(table)
    assert len(results[0].tables()[0].columns) == 2


def test_names_of_files() -> None:
    assert file_names([Path("clean.json"), Path("rough.json")]) == ["clean", "rough"]
    assert file_names([Path("x.json"), Path("x.json")]) == [f"{Path.cwd().name}/x (1)", f"{Path.cwd().name}/x (2)"]
    for text in ("a", "a,b,c", "a,a", "a,"):
        with pytest.raises(BadValue, match="give 2 names with commas"):
            file_names([Path("x"), Path("y")], text)
