"""MLflow: a data base in a folder, unless `MLFLOW_TRACKING_URI` names a server."""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import urlsplit

from jostle.reporting.trackers.payload import TrackerPayload
from jostle.reporting.trackers.tracker import environment, tracker

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
