"""MLflow, TensorBoard and Weights & Biases.

All stay on this machine by default: MLflow writes a data base in a folder unless `MLFLOW_TRACKING_URI` names a server,
TensorBoard an event file, Weights & Biases an offline run unless `WANDB_MODE` says otherwise.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

from jostle.reporting.trackers.tracker import TrackerPayload, environment, tracker

EXPERIMENT = "jostle"


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


_STRING = 7  # the type of text in a tensor


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
