"""Experiment trackers, with fake clients; a tracker that fails leaves the run unchanged."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from helpers.synthetic_runs import record_of
from jostle.errors import MissingExtra, ResourceError, UnknownName
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.scores import CellScore
from jostle.reporting.trackers import environment, track_run, tracker_payload, trackers

run = record_of(name="my_run", videos=4)


@pytest.fixture(autouse=True)
def no_tracker_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_PROJECT", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand-in for `wandb`, whose run is `there`."""
    module = MagicMock()
    module.there = module.init.return_value.__enter__.return_value
    module.there.dir = "/there/files"
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand-in for the class `MlflowClient`, whose instance is its return value."""
    module = MagicMock()
    for name in ("Metric", "Param", "RunTag"):
        setattr(module.entities, name, lambda *values: values)
    client = module.MlflowClient.return_value
    client.get_experiment_by_name.return_value = None
    client.create_run.return_value.info.run_id = "r"
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.setitem(sys.modules, "mlflow.entities", module.entities)
    return module.MlflowClient


def test_wandb_is_offline_and_gets_the_whole_payload(run: RunRecord, wandb: Any, tmp_path: Path) -> None:
    before = dict(os.environ)
    address = track_run(run, "wandb", tmp_path)
    payload, settings = tracker_payload(run), wandb.init.call_args.kwargs
    assert (settings["mode"], settings["config"]) == ("offline", payload.config)
    assert payload.scalars.items() <= wandb.there.log.call_args.args[0].items()
    wandb.there.summary.update.assert_called_once_with(payload.summary)
    files = wandb.Artifact.return_value
    assert [call.kwargs["name"] for call in files.add_file.call_args_list] == [path.name for path in payload.files]
    wandb.there.log_artifact.assert_called_once_with(files)
    assert len(wandb.Table.call_args.kwargs["data"]) == 4
    wandb.init.return_value.__exit__.assert_called_once()
    assert address == "wandb sync /there"
    assert dict(os.environ) == before


def test_wandb_is_online_with_wandb_mode(
    run: RunRecord, wandb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    track_run(run, "wandb", tmp_path)
    assert wandb.init.call_args.kwargs["mode"] == "online"


def test_mlflow_writes_to_its_folder(run: RunRecord, mlflow: Any, tmp_path: Path) -> None:
    address = track_run(run, "mlflow", tmp_path / "new")
    payload, client, uri = tracker_payload(run), mlflow.return_value, f"sqlite:///{tmp_path}/new/mlflow.db"
    mlflow.assert_called_once_with(tracking_uri=uri)
    client.get_experiment_by_name.assert_called_once_with("jostle")
    assert address.endswith(uri)
    there, metrics, params, _ = client.log_batch.call_args.args
    assert there == "r"
    assert {name: value for name, value, *_ in metrics} == {**payload.scalars, **payload.summary}
    assert dict(params) == {name: str(value) for name, value in payload.config.items()}
    files = [Path(call.args[1]).name for call in client.log_artifact.call_args_list]
    assert files == [path.name for path in payload.files]
    client.set_terminated.assert_called_once_with("r")


@pytest.mark.fault("F89")
def test_F89_password_is_not_printed(
    run: RunRecord, mlflow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:secret@host.example/mlflow")
    assert track_run(run, "mlflow", tmp_path) == "host.example"
    mlflow.assert_called_once_with(tracking_uri="https://me:secret@host.example/mlflow")


@pytest.mark.fault("F88")
def test_F88_a_tracker_that_fails_leaves_the_run_alone(run: RunRecord, mlflow: Any, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    mlflow.return_value.log_batch.side_effect = RuntimeError("no such host")
    with pytest.raises(ResourceError, match=r"mlflow did not take the run.*no such host.*is complete") as caught:
        track_run(run, "mlflow", tmp_path)
    assert caught.value.fault == "F88"
    mlflow.return_value.set_terminated.assert_called_once_with("r", "FAILED")
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before


@pytest.mark.fault("F90")
@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow"])
def test_F90_missing_package_names_the_extra(
    name: str, run: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Importing a submodule that is loaded already does not import its package.
    for submodule in [other for other in sys.modules if other.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, submodule)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'jostle\[{name}\]'"):
        track_run(run, name, tmp_path)


def test_registry_of_trackers() -> None:
    assert list(trackers) == ["mlflow", "tensorboard", "wandb"]
    with pytest.raises(UnknownName, match="did you mean wandb"):
        trackers["wanb"]


def test_environment_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_A", "mine")
    with environment(JOSTLE_A="theirs", JOSTLE_B="theirs"):
        assert (os.environ["JOSTLE_A"], os.environ["JOSTLE_B"]) == ("mine", "theirs")
    assert "JOSTLE_B" not in os.environ


def test_tensorboard_reads_the_log(run: RunRecord, tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert track_run(run, "tensorboard", tmp_path) == f"tensorboard --logdir {tmp_path}"
    events = reader.EventAccumulator(str(tmp_path / run.folder.name)).Reload()
    payload = tracker_payload(run)
    assert set(events.Tags()["scalars"]) == {*payload.scalars, *payload.summary}
    for tag, value in payload.scalars.items():
        assert events.Scalars(tag)[0].value == pytest.approx(value, rel=1e-6)
    assert "config" in events.Tags()["tensors"]


def test_tags_follow_the_convention(run: RunRecord) -> None:
    payload = tracker_payload(run)
    assert payload.name == "my_run"
    assert payload.scalars == {
        "robustness/mean_ap/clean/0": run.scores.clean,
        "robustness/mean_ap/black_frame/1": run.values["thumos14-c/black_frame:1"],
        "robustness/mean_ap/black_frame/3": run.values["thumos14-c/black_frame:3"],
        "robustness/mean_ap/motion_blur/1": run.values["thumos14-c/motion_blur:1"],
        "robustness/mean_ap/motion_blur/3": run.values["thumos14-c/motion_blur:3"],
    }
    assert payload.summary["mPC"] == run.scores.mpc
    assert payload.summary["rPC"] == run.scores.rpc
    assert payload.config["fingerprint"] == run.about.fingerprint
    assert None not in payload.config.values()
    assert {path.name for path in payload.files} >= {"run.json", "scores.json", "diagnosis.json"}


def test_tags_are_accepted_by_every_tracker(run: RunRecord) -> None:
    strange = tuple(
        CellScore(cell, 0.5) for cell in ("fog:3+shot_noise:2", "black_frame:1@at:50%x1", "a/fog:1", "b/fog:1", "rain")
    )
    payload = tracker_payload(replace(run, scores=replace(run.scores, beside=strange)))
    assert len(payload.scalars) == 1 + 4 + 5
    assert all(re.fullmatch(r"[A-Za-z0-9_./-]+", tag) for tag in payload.scalars)
    assert "robustness/mean_ap/a-fog/1" in payload.scalars  # two profiles share the name


def test_undefined_numbers_are_left_out(run: RunRecord) -> None:
    payload = tracker_payload(replace(run, scores=replace(run.scores, rpc=None, clean=0.0)))
    assert "rPC" not in payload.summary
    assert payload.cells[0][2] is None
