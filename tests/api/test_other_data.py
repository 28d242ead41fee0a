"""Recipes on anybody's videos, and copies that are not whole: every number says what it is of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import jostle
from helpers.numpy_extractor import write_video
from helpers.own_models import SPEC, Small
from jostle import api
from jostle.cli.app import app
from jostle.errors import BadValue, Incomparable
from jostle.reporting.analysis.labels import benchmark_title
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.cards import dataset_card, model_card

RECIPE = """
name = "tiny-p"
version = 1
dataset = "ucf101"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1
sampling = { clips = 2, short_side = 24, size = 20, frames = 6 }

[[groups]]
name = "main"
cells = ["gaussian_noise:3"]
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("here")
    (folder / "tiny-p.toml").write_text(RECIPE)
    for seed, name in enumerate(("Archery/v_Archery_g01_c01", "Archery/v_Archery_g02_c01", "Diving/v_Diving_g01_c01")):
        path = folder / "kitchen" / f"{name}.mkv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_video(path, 20, seed=seed)
    return folder


def run(here: Path, out: Path, **asked: Any) -> Any:
    return jostle.run(
        here / "tiny-p.toml", model=Small(), spec=SPEC, data=here / "kitchen", out=out, device="cpu", **asked
    )


@pytest.fixture(scope="module")
def runs(here: Path) -> dict[str, Path]:
    made = {"own": here / "own", "moved": here / "moved"}
    run(here, made["own"])
    run(here, made["moved"], dataset="folder")
    return made


def test_a_run_on_other_data_says_so_in_its_name_and_record(runs: dict[str, Path]) -> None:
    about = json.loads((runs["moved"] / "run.json").read_text())
    assert (about["benchmark"], about["recipe"], about["dataset"]) == ("tiny-p on folder kitchen", "tiny-p", "folder")
    assert json.loads((runs["moved"] / "scores.json").read_text())["benchmark"] == "tiny-p on folder kitchen"
    record = RunRecord.read(runs["moved"])
    assert benchmark_title(record) == "tiny-p on folder kitchen"
    assert "on tiny-p on folder kitchen" in model_card(record)
    assert "jostle run tiny-p --dataset folder --seed 0" in dataset_card(record)
    own = json.loads((runs["own"] / "run.json").read_text())
    assert (own["benchmark"], own["recipe"], own["dataset"]) == ("tiny-p", "tiny-p", "ucf101")


def test_a_run_of_the_benchmark_and_one_on_other_data_are_not_compared(runs: dict[str, Path]) -> None:
    with pytest.raises(Incomparable, match="benchmarks"):
        api.diff(runs["own"], runs["moved"])


def test_a_run_from_before_recipes_could_move_is_read(runs: dict[str, Path], tmp_path: Path) -> None:
    about = json.loads((runs["own"] / "run.json").read_text())
    del about["recipe"]
    (tmp_path / "run.json").write_text(json.dumps(about))
    (tmp_path / "scores.json").write_bytes((runs["own"] / "scores.json").read_bytes())
    assert RunRecord.read(tmp_path).about.recipe == "tiny-p"


def test_a_partial_copy_counts_against_the_published_list(here: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    covered = json.loads((runs["own"] / "scores.json").read_text())["coverage"]
    assert covered == {"videos": 3, "of": 3783, "classes": 2, "of_classes": 101}
    said = "3 of 3783 videos and 2 of 101 classes"
    record = RunRecord.read(runs["own"])
    assert str(record.scores.coverage) == said
    assert not record.scores.coverage.whole
    assert said in model_card(record)
    jostle.report([runs["own"]], out=tmp_path / "report.html")
    assert said in (tmp_path / "report.html").read_text()
    found = json.loads((runs["moved"] / "scores.json").read_text())["coverage"]
    assert found == {"videos": 3, "of": 3, "classes": 2, "of_classes": 2}


def test_what_does_not_go_together_is_refused(here: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="thumos14 is a data set for detection, and tiny-p is a recipe for recognition"):
        run(here, tmp_path / "run", dataset="thumos14")
    with pytest.raises(BadValue, match="puppets, which jostle generates and does not read from"):
        jostle.build("puppets-c", data=here / "kitchen", out=tmp_path / "copies")
    with pytest.raises(BadValue, match="annotated for recognition, and thumos14-c is a recipe for detection"):
        jostle.build("thumos14-c", dataset="folder", data=here / "kitchen", out=tmp_path / "copies")


def test_the_command_line_says_the_same(here: Path, tmp_path: Path) -> None:
    asked = ["build", str(here / "tiny-p.toml"), "--dataset", "folder", "--data", str(here / "kitchen")]
    done = CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "copies"), "-q"])
    assert done.exit_code == 0, done.output
    about = json.loads((tmp_path / "copies" / "jostle.json").read_text())
    assert (about["benchmark"], about["recipe"], about["dataset"]) == ("tiny-p on folder kitchen", "tiny-p", "folder")
