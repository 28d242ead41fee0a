"""Experiment trackers, with fake clients; a tracker that fails leaves the run unchanged."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from jostle.errors import MissingExtra, ResourceError, UnknownName
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.scores import CellScore
from jostle.reporting.trackers import environment, track_run, tracker_payload, trackers


@pytest.fixture(autouse=True)
def no_tracker_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_PROJECT", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)


class FakeWandb(ModuleType):
    """Fake of the `wandb` module that records its calls."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.settings: dict[str, Any] = {}
        self.logged: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.files: list[str] = []
        self.ended = False
        self.id, self.dir = "abc", "/there/files"

    def init(self, **settings: Any) -> FakeWandb:
        self.settings = settings
        return self

    def __enter__(self) -> FakeWandb:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True

    def log(self, values: dict[str, Any]) -> None:
        self.logged |= values

    def Table(self, columns: list[str], data: list[Any]) -> Any:
        return (columns, data)

    def Artifact(self, name: str, type: str) -> Any:
        return SimpleNamespace(add_file=lambda path, name: self.files.append(name))

    def log_artifact(self, artifact: Any) -> None:
        pass


class FakeMlflow(ModuleType):
    """Fake of the `mlflow` module and client that records its calls."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.entities = ModuleType("mlflow.entities")
        for name in ("Metric", "Param", "RunTag"):
            setattr(self.entities, name, lambda *values: values)
        self.uri = self.state = ""
        self.metrics: dict[str, float] = {}
        self.params: dict[str, str] = {}
        self.files: list[str] = []
        self.fails = False

    def MlflowClient(self, tracking_uri: str) -> FakeMlflow:
        self.uri = tracking_uri
        return self

    def get_experiment_by_name(self, name: str) -> None:
        assert name == "jostle"

    def create_experiment(self, name: str, artifact_location: str | None) -> str:
        return "1"

    def create_run(self, experiment: str, run_name: str) -> Any:
        return SimpleNamespace(info=SimpleNamespace(run_id="r"))

    def log_batch(self, run: str, metrics: list[Any], params: list[Any], tags: list[Any]) -> None:
        if self.fails:
            raise RuntimeError("no such host")
        self.metrics = {name: value for name, value, *_ in metrics}
        self.params = dict(params)

    def log_artifact(self, run: str, path: str) -> None:
        self.files.append(Path(path).name)

    def set_terminated(self, run: str, status: str = "FINISHED") -> None:
        self.state = status


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    module = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> FakeMlflow:
    module = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.setitem(sys.modules, "mlflow.entities", module.entities)
    return module


def test_wandb_is_offline_and_gets_the_whole_payload(run: RunRecord, wandb: FakeWandb, tmp_path: Path) -> None:
    before = dict(os.environ)
    address = track_run(run, "wandb", tmp_path)
    payload = tracker_payload(run)
    assert wandb.settings["mode"] == "offline"
    assert wandb.settings["config"] == payload.config
    assert payload.scalars.items() <= wandb.logged.items()
    assert wandb.summary == payload.summary
    assert wandb.files == [path.name for path in payload.files]
    assert len(wandb.logged["cells"][1]) == 4
    assert wandb.ended
    assert address == "wandb sync /there"
    assert dict(os.environ) == before


def test_wandb_is_online_with_wandb_mode(
    run: RunRecord, wandb: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    track_run(run, "wandb", tmp_path)
    assert wandb.settings["mode"] == "online"


def test_mlflow_writes_to_its_folder(run: RunRecord, mlflow: FakeMlflow, tmp_path: Path) -> None:
    address = track_run(run, "mlflow", tmp_path / "new")
    payload = tracker_payload(run)
    assert mlflow.uri == f"sqlite:///{tmp_path}/new/mlflow.db"
    assert address.endswith(mlflow.uri)
    assert mlflow.metrics == {**payload.scalars, **payload.summary}
    assert mlflow.params == {name: str(value) for name, value in payload.config.items()}
    assert mlflow.files == [path.name for path in payload.files]
    assert mlflow.state == "FINISHED"


@pytest.mark.fault("F89")
def test_F89_password_is_not_printed(
    run: RunRecord, mlflow: FakeMlflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:secret@host.example/mlflow")
    address = track_run(run, "mlflow", tmp_path)
    assert mlflow.uri == "https://me:secret@host.example/mlflow"
    assert address == "host.example"


@pytest.mark.fault("F88")
def test_F88_a_tracker_that_fails_leaves_the_run_alone(run: RunRecord, mlflow: FakeMlflow, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    mlflow.fails = True
    with pytest.raises(ResourceError, match=r"mlflow did not take the run.*no such host.*is complete") as caught:
        track_run(run, "mlflow", tmp_path)
    assert caught.value.fault == "F88"
    assert mlflow.state == "FAILED"
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
