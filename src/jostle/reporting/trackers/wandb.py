"""Weights & Biases: offline, unless `WANDB_MODE` says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

from jostle.reporting.trackers.payload import TrackerPayload
from jostle.reporting.trackers.tracker import environment, tracker


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
