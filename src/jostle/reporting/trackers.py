"""Experiment trackers: MLflow, TensorBoard and Weights & Biases, their registry, and what a run gives them.

Whatever a tracker raises becomes one error, and the run is untouched. All stay on this machine by default: MLflow
writes a data base in a folder unless `MLFLOW_TRACKING_URI` names a server, TensorBoard an event file, Weights & Biases
an offline run unless `WANDB_MODE` says otherwise.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jostle.core.registry import Registry
from jostle.errors import JostleError, MissingExtra, ResourceError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import format_adaptation
from jostle.reporting.analysis.labels import cell_labels

EXPERIMENT = "jostle"
_STRING = 7  # the type of text in a tensor of TensorBoard
_SUMMARY = {
    "clean": "clean",
    "mPC": "mpc",
    "rPC": "rpc",
    "mean_corrupted": "mean_corrupted",
    "relative_robustness": "relative_robustness",
    "absolute_robustness": "absolute_robustness",
}


@dataclass(frozen=True)
class TrackerPayload:
    """A run, ready for a tracker.

    Attributes:
        name: of the run: its folder.
        scalars: fractions by tag, `robustness/<metric>/<corruption>/<severity>`; clean video is severity 0.
        summary: the numbers of the whole run that there are, as `mPC` and `rPC`.
        config: what ran, flat.
        cells: (cell, value, of clean) for a table.
        files: the run's own records, and its report where there is one.
    """

    name: str
    scalars: dict[str, float]
    summary: dict[str, float]
    config: dict[str, str | int]
    cells: tuple[tuple[str, float, float | None], ...]
    files: tuple[Path, ...]


def tracker_payload(record: RunRecord) -> TrackerPayload:
    """Collect the payload of a run; numbers without meaning are left out."""
    scores, clean = record.scores, record.scores.clean
    listed = scores.listed
    metric = record.about.content.metric
    tags = cell_labels([one.cell for one in listed], "/")
    scalars = {f"robustness/{metric}/{CLEAN}/0": clean}
    scalars |= {f"robustness/{metric}/{tags[one.cell]}": one.value for one in listed}
    return TrackerPayload(
        name=record.folder.resolve().name,
        scalars=scalars,
        summary={name: value for name, key in _SUMMARY.items() if (value := getattr(scores, key)) is not None},
        config=_config(record),
        cells=tuple((one.cell, one.value, one.value / clean if clean else None) for one in listed),
        files=tuple(path for path in _files(record.folder) if path.is_file()),
    )


def _config(record: RunRecord) -> dict[str, str | int]:
    about = record.about
    what = ("benchmark", "recipe", "fingerprint", "model", "weights", "extractor", "mend", "mend_weights")
    data = ("dataset", "subset", "truth", "seed", "videos")
    config: dict[str, Any] = {name: getattr(about, name) for name in what + data}
    config["adapt"] = format_adaptation(about.adapt)
    config |= {"metric": record.scores.metric, "task": record.task.name}
    config |= {f"version/{package}": version for package, version in about.versions.items()}
    return {name: value for name, value in config.items() if value is not None}


def _files(folder: Path) -> list[Path]:
    own = RunFolder(folder)
    return [
        own.about,
        own.scores,
        own.diagnosis,
        own.failures,
        folder / "report.html",
        folder / "report" / "report.html",
    ]


# Gets a run and a folder for what it keeps, which need not be there, and says where the run can be seen.
Tracker = Callable[[TrackerPayload, Path], str]

trackers: Registry[Tracker] = Registry("tracker")


def tracker(name: str) -> Callable[[Tracker], Tracker]:
    """Register the decorated function, which stays as it is."""

    def register(function: Tracker) -> Tracker:
        trackers.add(name, function)
        return function

    return register


def track_run(record: RunRecord, to: str, folder: Path) -> str:
    """Log a finished run to a tracker.

    Args:
        to: the name of a tracker.
        folder: for what it keeps on this machine; made by the tracker.

    Returns:
        Where the run can be seen.

    Raises:
        MissingExtra: if the tracker is not installed.
        ResourceError: if it fails; the run folder is as it was.
    """
    log = trackers[to]
    payload = tracker_payload(record)
    try:
        return log(payload, folder)
    except JostleError:
        raise
    except ImportError as error:
        raise MissingExtra(f"tracking with {to} ({error})", to) from error
    except Exception as error:  # whatever a foreign library raises; the run itself is complete
        raise ResourceError(
            f"{to} did not take the run ({type(error).__name__}: {error}); {record.folder} is complete, "
            "and can be given to it again",
            fault="F88",
        ) from error


@contextmanager
def environment(**defaults: str) -> Iterator[None]:
    """Environment variables for a while; those that the user has set stay."""
    added = [name for name in defaults if name not in os.environ]
    os.environ.update({name: defaults[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@tracker("mlflow")
def log_to_mlflow(run: TrackerPayload, folder: Path) -> str:
    """Write into `folder/mlflow.db`; look at it by `mlflow ui --backend-store-uri`."""
    own = f"sqlite:///{(folder / 'mlflow.db').resolve()}"
    with environment(MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_TRACKING_URI=own):
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param, RunTag

        folder.mkdir(parents=True, exist_ok=True)
        uri = os.environ["MLFLOW_TRACKING_URI"]
        client = MlflowClient(tracking_uri=uri)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        known = client.get_experiment_by_name(name)
        artifacts = (folder / "mlartifacts").resolve().as_uri() if uri == own else None
        experiment = known.experiment_id if known else client.create_experiment(name, artifact_location=artifacts)
        there = client.create_run(experiment, run_name=run.name).info.run_id
        try:
            now = int(1000 * time.time())
            metrics = [Metric(tag, value, now, 0) for tag, value in {**run.scalars, **run.summary}.items()]
            params = [Param(key, str(value)) for key, value in run.config.items()]
            client.log_batch(there, metrics, params, [RunTag("jostle.run", run.name)])
            for path in run.files:
                client.log_artifact(there, str(path))
        except BaseException:
            client.set_terminated(there, "FAILED")
            raise
        client.set_terminated(there)
    if uri == own:
        return f"mlflow ui --backend-store-uri {uri}"
    return urlsplit(uri).hostname or "the tracking server"  # an address may hold a password


@tracker("tensorboard")
def log_to_tensorboard(run: TrackerPayload, folder: Path) -> str:
    """Write `folder/<run>`; look at it by `tensorboard --logdir folder`."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.plugins.text.metadata import create_summary_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in {**run.scalars, **run.summary}.items()]
    config = f"```json\n{json.dumps(run.config, indent=2)}\n```"
    text = TensorProto(dtype=_STRING, string_val=[config.encode()], tensor_shape=TensorShapeProto())
    about = create_summary_metadata(display_name="config", description="What ran.")
    values.append(Summary.Value(tag="config", tensor=text, metadata=about))
    writer = EventFileWriter(str(folder / run.name))
    try:
        writer.add_event(Event(wall_time=time.time(), step=0, summary=Summary(value=values)))
    finally:
        writer.close()
    return f"tensorboard --logdir {folder}"


@tracker("wandb")
def log_to_wandb(run: TrackerPayload, folder: Path) -> str:
    """Write an offline run into `folder/wandb`; `wandb sync` sends it when the user wants that."""
    with environment(WANDB_MODE="offline", WANDB_ERROR_REPORTING="false", WANDB_SILENT="true"):
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        with wandb.init(
            project=os.environ.get("WANDB_PROJECT", "jostle"),
            name=run.name,
            dir=str(folder),
            config=dict(run.config),
            mode=os.environ["WANDB_MODE"],
        ) as there:
            rows = [[cell, value, left] for cell, value, left in run.cells]
            there.log({**run.scalars, "cells": wandb.Table(columns=["cell", "value", "of clean"], data=rows)})
            there.summary.update(run.summary)
            files = wandb.Artifact(f"run-{there.id}", type="robustness-run")
            for path in run.files:
                files.add_file(str(path), name=path.name)
            there.log_artifact(files)
            where = str(there.dir)
        online = os.environ["WANDB_MODE"] == "online"
    return where if online else f"wandb sync {Path(where).parent}"
