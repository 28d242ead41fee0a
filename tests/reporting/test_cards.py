"""Model and data set cards for the Hugging Face hub: YAML front matter and escaping of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.synthetic_runs import CELLS, record_of, write_run
from jostle.errors import DataError
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.cards import front_matter, write_cards

yaml = pytest.importorskip("yaml")
STRANGE = 'a: b\n---\n"<script>" # | *no*'


run = record_of("recognition", videos=4, model=STRANGE)


def read_card(path: Path) -> tuple[Any, str]:
    empty, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert not empty
    return yaml.safe_load(head), body


def test_model_card(run: RunRecord, tmp_path: Path) -> None:
    head, body = read_card(write_cards(run, tmp_path, "apache-2.0")[0])
    assert head["license"] == "apache-2.0"
    assert head["pipeline_tag"] == "video-classification"
    (model,) = head["model-index"]
    assert model["name"] == STRANGE
    metrics_by_config = {result["dataset"]["config"]: result["metrics"] for result in model["results"]}
    assert list(metrics_by_config) == [
        "clean",
        *(f"{cell.split('/')[1].replace(':', '_')}" for cell in CELLS),
        "corrupted",
    ]
    assert metrics_by_config["clean"] == [
        {"type": "top_k_accuracy", "name": "top-1 accuracy", "value": pytest.approx(run.scores.clean)}
    ]
    assert [metric["value"] for metric in metrics_by_config["corrupted"]] == [run.scores.mpc, run.scores.rpc]
    assert "<script>" not in body
    assert "4 of 4 videos, 4 of 4 corrupted cells" in body
    assert run.about.fingerprint in body


def test_predictions_card(run: RunRecord, tmp_path: Path) -> None:
    head, body = read_card(write_cards(run, tmp_path)[1])
    assert "license" not in head
    assert [config["config_name"] for config in head["configs"]][:2] == ["clean", "black_frame_1"]
    for config in head["configs"]:
        (file,) = config["data_files"]
        assert file["split"] == "test"
        assert (run.folder / file["path"]).is_file()
    assert "No video is part of this" in body
    assert "centre:10%" in body
    assert "<script>" not in body


@pytest.mark.fault("F89")
def test_F89_existing_card_is_not_overwritten(run: RunRecord, tmp_path: Path) -> None:
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "README.md").write_text("mine")
    with pytest.raises(DataError, match="is there already"):
        write_cards(run, tmp_path)
    assert not (tmp_path / "model").exists()
    assert (tmp_path / "dataset" / "README.md").read_text() == "mine"


leaves = st.text() | st.integers(-9, 9) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
keys = st.sampled_from(["license", "model-index", "pipeline_tag", "tags", "name"])
maps = st.dictionaries(keys, leaves, min_size=1)


@given(st.dictionaries(keys, leaves | maps | st.lists(leaves | maps, min_size=1), min_size=1))
def test_front_matter_round_trip(values: dict[str, Any]) -> None:
    text = front_matter(values)
    assert text.startswith("---\n")
    assert text.endswith("\n---")
    assert yaml.safe_load(text[4:-4]) == values


@pytest.mark.parametrize(
    ("task", "tag", "description"),
    [("questions", "video-text-to-text", "`choice`, `probabilities`"), ("moments", None, "start, end and score")],
)
def test_cards_of_language_runs(task: str, tag: str | None, description: str, tmp_path: Path) -> None:
    record = RunRecord.read(write_run(tmp_path / "run", task, videos=4, cells=CELLS[:1]))
    model, predictions = write_cards(record, tmp_path / "cards")
    head, body = read_card(model)
    assert head.get("pipeline_tag") == tag
    assert "Levels to hold the clean" in body
    assert "with one frame" in body
    head, body = read_card(predictions)
    assert head["configs"][0]["data_files"][0]["path"] == "predictions/clean.json"
    assert description in body
