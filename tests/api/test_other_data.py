"""Recipes on other data sets and on partial copies: results name their data and coverage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import jostle
from helpers.benchmark_files import SAMPLING, write_benchmark
from helpers.numpy_extractor import write_video
from helpers.own_models import SPEC, Small
from jostle import api
from jostle.cli.app import app
from jostle.errors import BadValue, Incomparable
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.analysis.labels import benchmark_title
from jostle.reporting.cards import dataset_card, model_card


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("here")
    write_benchmark(folder, "recognition", "gaussian_noise:3", dataset="ucf101", sampling=SAMPLING)
    for seed, name in enumerate(("Archery/v_Archery_g01_c01", "Archery/v_Archery_g02_c01", "Diving/v_Diving_g01_c01")):
        path = folder / "kitchen" / f"{name}.mkv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_video(path, 20, seed=seed)
    return folder


def run(workspace: Path, out: Path, **options: Any) -> Any:
    return jostle.run(
        workspace / "tiny-p.toml",
        model=Small(),
        spec=SPEC,
        data=workspace / "kitchen",
        out=out,
        device="cpu",
        **options,
    )


@pytest.fixture(scope="module")
def runs(workspace: Path) -> dict[str, Path]:
    folders = {"own": workspace / "own", "moved": workspace / "moved"}
    run(workspace, folders["own"])
    run(workspace, folders["moved"], dataset="folder")
    return folders


def test_run_on_other_data_is_named_after_it(runs: dict[str, Path]) -> None:
    metadata = json.loads((runs["moved"] / "run.json").read_text())
    assert (metadata["benchmark"], metadata["recipe"], metadata["dataset"]) == (
        "tiny-p on folder kitchen",
        "tiny-p",
        "folder",
    )
    assert json.loads((runs["moved"] / "scores.json").read_text())["benchmark"] == "tiny-p on folder kitchen"
    record = RunRecord.read(runs["moved"])
    assert benchmark_title(record) == "tiny-p on folder kitchen"
    assert "on tiny-p on folder kitchen" in model_card(record)
    assert "jostle run tiny-p --dataset folder --seed 0" in dataset_card(record)
    own_metadata = json.loads((runs["own"] / "run.json").read_text())
    assert (own_metadata["benchmark"], own_metadata["recipe"], own_metadata["dataset"]) == (
        "tiny-p",
        "tiny-p",
        "ucf101",
    )


def test_runs_on_different_data_are_not_compared(runs: dict[str, Path]) -> None:
    with pytest.raises(Incomparable, match="benchmarks"):
        api.diff(runs["own"], runs["moved"])


def test_old_run_without_recipe_is_read(runs: dict[str, Path], tmp_path: Path) -> None:
    metadata = json.loads((runs["own"] / "run.json").read_text())
    del metadata["recipe"]
    (tmp_path / "run.json").write_text(json.dumps(metadata))
    (tmp_path / "scores.json").write_bytes((runs["own"] / "scores.json").read_bytes())
    assert RunRecord.read(tmp_path).about.recipe == "tiny-p"


def test_partial_copy_is_counted_against_the_published_list(
    workspace: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    coverage = json.loads((runs["own"] / "scores.json").read_text())["coverage"]
    assert coverage == {"videos": 3, "of": 3783, "classes": 2, "of_classes": 101}
    text = "3 of 3783 videos and 2 of 101 classes"
    record = RunRecord.read(runs["own"])
    assert str(record.scores.coverage) == text
    assert not record.scores.coverage.whole
    assert text in model_card(record)
    jostle.report([runs["own"]], out=tmp_path / "report.html")
    assert text in (tmp_path / "report.html").read_text()
    coverage = json.loads((runs["moved"] / "scores.json").read_text())["coverage"]
    assert coverage == {"videos": 3, "of": 3, "classes": 2, "of_classes": 2}


def test_incompatible_data_sets_are_refused(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="thumos14 is a data set for detection, and tiny-p is a recipe for recognition"):
        run(workspace, tmp_path / "run", dataset="thumos14")
    with pytest.raises(BadValue, match="puppets, which jostle generates and does not read from"):
        jostle.build("puppets-c", data=workspace / "kitchen", out=tmp_path / "copies")
    with pytest.raises(BadValue, match="annotated for recognition, and thumos14-c is a recipe for detection"):
        jostle.build("thumos14-c", dataset="folder", data=workspace / "kitchen", out=tmp_path / "copies")


def test_command_line_names_the_data(workspace: Path, tmp_path: Path) -> None:
    command = ["build", str(workspace / "tiny-p.toml"), "--dataset", "folder", "--data", str(workspace / "kitchen")]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "copies"), "-q"])
    assert result.exit_code == 0, result.output
    metadata = json.loads((tmp_path / "copies" / "jostle.json").read_text())
    assert (metadata["benchmark"], metadata["recipe"], metadata["dataset"]) == (
        "tiny-p on folder kitchen",
        "tiny-p",
        "folder",
    )
