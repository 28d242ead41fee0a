"""Training loop with draws keyed by step and content, so that resumed runs give the same weights.

Under `torchrun` every process takes its share of each batch, and gradients are added up, so that the result is that
of one process.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jostle.core.formatting import join_names, percent
from jostle.core.random import key_for
from jostle.core.results import Result
from jostle.core.settings import settings_as_dict, with_former_keys
from jostle.errors import BadValue, DataError, SourceChanged
from jostle.io.files.atomic import write_text
from jostle.io.files.lock import FolderLock
from jostle.models.checkpoints import write_weights
from jostle.training.checkpoint import SETTINGS, Log, Progress, load_state, read_settings_of, save_state
from jostle.training.config import RunConfig, changed_settings
from jostle.training.distributed import Processes
from jostle.training.events import TrainingPlan, TrainingProgress, Watch
from jostle.training.learner import Learner, folder_for
from jostle.training.optimisation import Average, make_optimiser
from jostle.training.schedule import learning_rate
from jostle.training.task import training_tasks

OnStep = Callable[[int, int], None]


@dataclass(frozen=True)
class TrainingResult(Result):
    """Result of a finished run.

    Attributes:
        folder: folder of the run.
        weights: averaged weights of the best epoch, or of the last if none was chosen.
        score: score of that epoch, None if none was chosen.
        epoch: that epoch, from 1.
        steps: number of optimisation steps.
        skipped: number of steps skipped because their loss or gradient was not finite.
        chosen_by: name of the score.
        first_loss: mean loss of the first epoch.
        last_loss: mean loss of the last epoch.
    """

    folder: Path
    weights: Path
    score: float | None
    epoch: int
    steps: int
    skipped: int
    chosen_by: str
    first_loss: float | None
    last_loss: float | None

    def written(self) -> tuple[Path, ...]:
        """Return the path of the weights."""
        return (self.weights,)

    def notes(self) -> tuple[str, ...]:
        """Return which epoch was chosen, and the work and losses."""
        chosen = f", chosen by {self.chosen_by} {percent(self.score)} %" if self.score is not None else ""
        skipped = f", {self.skipped} skipped as they were not finite" if self.skipped else ""
        loss = ""
        if self.first_loss is not None and self.last_loss is not None:
            loss = f"; loss {self.first_loss:.3f} at first, {self.last_loss:.3f} at last"
        return (f"epoch {self.epoch}{chosen}; {self.steps} steps{skipped}{loss}",)


class Trainer:
    """One training run in one folder.

    Args:
        config: settings of the run.
        folder: folder of checkpoints, log and weights; a stopped run there is resumed.
        watch: called with the progress of the data preparation.
    """

    def __init__(self, config: RunConfig, folder: Path, watch: Watch | None = None) -> None:
        self.config, self.folder = config, folder
        self._settings = self._stored_settings()
        self.processes = Processes.join(config.device)
        self.learner = make_learner(config, self.processes)
        self.learner.prepare(watch)
        for name in ("name", "model", "steps_an_epoch"):
            if not hasattr(self.learner, name):
                raise BadValue(f"training task {config.task}: its learner has no {name}; set it when it is made")
        self.optimiser = make_optimiser(self.learner.model, config.optimiser, self.learner.rates)
        self.average = Average(self.learner.model, config.optimiser.average, ramp=config.optimiser.average_ramp)
        self.progress = Progress(loss_normalizer=self.learner.running)
        self.steps_an_epoch = self.learner.steps_an_epoch

    def run(self, on_step: OnStep | None = None, watch: Watch | None = None) -> TrainingResult:
        """Train to the end, resuming from the checkpoint of the folder.

        Raises:
            ResourceError: if another process trains into the folder, or the disk is full.
        """
        with FolderLock(self.folder) if self.processes.first else nullcontext():
            return self._run(on_step, watch)

    def _run(self, on_step: OnStep | None, watch: Watch | None) -> TrainingResult:
        log = Log(self.folder, tensorboard=self.config.tensorboard and self.processes.first)
        self._resume(log)
        plan = self._plan()
        total = plan.steps
        if plan.warning and self.processes.first:
            warnings.warn(plan.warning, stacklevel=4)
            log.write({"event": "warning", "step": self.progress.step, "message": plan.warning})
        if watch is not None:
            watch(plan)
        saved = time.monotonic()
        with torch.random.fork_rng(devices=[self.processes.device] if self.processes.device.type == "cuda" else []):
            while self.progress.step < total:
                epoch = self.progress.step // self.steps_an_epoch
                self._step(log, epoch)
                if on_step is not None:
                    on_step(self.progress.step, total)
                if self.progress.step % self.steps_an_epoch == 0:
                    self._close_epoch(log, epoch, last=self.progress.step == total)
                if watch is not None:
                    watch(self._current_progress(epoch, total))
                if self.progress.step < total and time.monotonic() - saved < self.config.save_every:
                    continue
                self._save()
                saved = time.monotonic()
        return self._finish()

    def _step(self, log: Log, epoch: int) -> None:
        config, learner, step = self.config, self.learner, self.progress.step
        torch.manual_seed(key_for(config.seed, "step", step) % 2**63)
        learner.ready()
        for group in self.optimiser.param_groups:
            group["lr"] = group["share"] * learning_rate(config.optimiser, step, self.steps_an_epoch)
        self.optimiser.zero_grad(set_to_none=True)
        before = learner.snapshot()
        parts: dict[str, float] = {}
        for losses in learner.losses(epoch, step % self.steps_an_epoch):
            if "total" not in losses:
                raise BadValue(f"training task {config.task}: its losses have no total, which is what is minimised")
            (losses["total"] / config.optimiser.accumulate).backward()  # type: ignore[no-untyped-call]
            for name, value in losses.items():
                parts[name] = parts.get(name, 0.0) + float(value.detach()) / config.optimiser.accumulate
        parameters = [p for p in learner.model.parameters() if p.grad is not None]
        self.processes.add_up([p.grad for p in parameters if p.grad is not None])
        limit = config.optimiser.clip or torch.inf
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
        self.progress.step += 1
        if not (np.isfinite(norm) and all(np.isfinite(value) for value in parts.values())):
            learner.undo(before)
            self._skip(log)
            return
        self.progress.skipped_in_a_row = 0
        self.optimiser.step()
        self.average.update(learner.model)
        self.progress.epoch_loss += parts["total"]
        self.progress.epoch_steps += 1
        row = {"event": "step", "step": self.progress.step, "epoch": epoch + 1, "gradient": norm, **parts}
        if self.processes.first:
            log.write(row)
            log.plot(self.progress.step, parts | {"gradient": norm, "lr": self.optimiser.param_groups[0]["lr"]})

    def _skip(self, log: Log) -> None:
        progress = self.progress
        progress.skipped += 1
        progress.skipped_in_a_row += 1
        if self.processes.first:
            log.write({"event": "skipped", "step": progress.step, "why": "the loss or its gradient is not finite"})
        if progress.skipped_in_a_row >= self.config.bad_steps:
            raise DataError(
                f"{progress.skipped_in_a_row} steps in a row had a loss or gradient that is not finite; the last good "
                f"checkpoint is in {self.folder}; lower the learning rate, or look at what is learned from",
                fault="F95",
            )

    def _plan(self) -> TrainingPlan:
        counts = self.learner.counts
        return TrainingPlan(
            self.learner.name,
            self.config.optimiser,
            self.steps_an_epoch,
            counts["learn"],
            counts["choose"],
            self.progress.step,
        )

    def _current_progress(self, epoch: int, total: int) -> TrainingProgress:
        progress, name = self.progress, self.learner.chosen_by
        loss = progress.epoch_loss / progress.epoch_steps if progress.epoch_steps else progress.last_loss
        score = progress.scores[-1][name] if progress.scores else None
        return TrainingProgress(progress.step, total, epoch + 1, loss, name, score, progress.best)

    def _close_epoch(self, log: Log, epoch: int, *, last: bool) -> None:
        progress = self.progress
        if progress.epoch_steps:
            progress.last_loss = progress.epoch_loss / progress.epoch_steps
            progress.first_loss = progress.last_loss if progress.first_loss is None else progress.first_loss
            progress.epoch_loss, progress.epoch_steps = 0.0, 0
        if not (last or (epoch + 1) % self.config.score_every == 0):
            return
        value, name = self.learner.score(self.average), self.learner.chosen_by
        if value is None:
            return
        row = {"event": "score", "step": self.progress.step, "epoch": epoch + 1, name: value}
        self.progress.scores.append(row)
        if self.processes.first:
            log.write(row)
            log.plot(self.progress.step, {f"select/{name}": value})
        if self.progress.best is None or value > self.progress.best:
            self.progress.best, self.progress.best_epoch = value, epoch + 1
            if self.processes.first:
                self._write_weights("best.safetensors")

    def _save(self) -> None:
        self.progress.loss_normalizer = self.learner.running
        if self.processes.first:
            save_state(self.folder, self.learner.model, self.optimiser, self.average, self.progress)

    def _resume(self, log: Log) -> None:
        fingerprint = self._fingerprint()
        self.progress.fingerprint = fingerprint
        progress = load_state(self.folder, self.learner.model, self.optimiser, self.average)
        if progress is None:
            if self.processes.first:
                record = {
                    "config": self._settings,
                    "torch": torch.__version__,
                    "fingerprint": fingerprint,
                    "videos": dict(self.learner.counts),
                }
                write_text(self.folder / SETTINGS, [json.dumps(record, indent=2), "\n"])
                log.trim(0)
            return
        if progress.fingerprint != fingerprint:
            raise SourceChanged(
                f"{self.folder} holds a run with other data or first weights; train into another folder, or remove it",
                fault="F72",
            )
        self.progress = progress
        self.learner.running = progress.loss_normalizer
        if self.processes.first:
            log.trim(progress.step)

    def _finish(self) -> TrainingResult:
        if self.processes.first:
            self._write_weights("last.safetensors")
        chosen = "best.safetensors" if self.progress.best is not None else "last.safetensors"
        return TrainingResult(
            folder=self.folder,
            weights=self.folder / chosen,
            score=self.progress.best,
            epoch=self.progress.best_epoch or self.config.optimiser.all_epochs,
            steps=self.progress.step - self.progress.skipped,
            skipped=self.progress.skipped,
            chosen_by=self.learner.chosen_by,
            first_loss=self.progress.first_loss,
            last_loss=self.progress.last_loss,
        )

    def _write_weights(self, name: str) -> None:
        write_weights(self.average.weights, self.folder / name, metadata=self.learner.metadata())

    def _stored_settings(self) -> dict[str, Any]:
        """Return the settings that the run of the folder was started with; of a new run its own.

        Raises:
            SourceChanged: F72 if others are given now, with the names of those that changed.
        """
        stored = read_settings_of(self.folder)
        if stored is None:
            return settings_as_dict(self.config)
        changed = changed_settings(stored, self.config)
        if changed:
            raise SourceChanged(
                f"{self.folder} holds a run with other settings: {join_names(changed, separator='; ')}; train into "
                "another folder, or remove it",
                fault="F72",
            )
        return stored

    def _fingerprint(self) -> str:
        """Return a hash of all that determines the result: settings as the run was started, data and first weights."""
        settings = {key: value for key, value in self._settings.items() if key not in self.config.FREE}
        digest = hashlib.sha256(json.dumps(with_former_keys(settings), sort_keys=True).encode())
        for part in self.learner.fingerprint_parts():
            digest.update(part)
        for name, value in self.learner.model.state_dict().items():
            digest.update(f"{name} {value.double().sum():.9e}".encode())
        return digest.hexdigest()


def make_learner(config: RunConfig, processes: Processes) -> Learner:
    """Create the learner of a task; what it draws from torch's generator depends on the seed alone.

    Raises:
        BadValue: if the settings are of another task, or the learner lacks what every one has.
    """
    task = training_tasks[config.task]
    if not isinstance(config, task.config):
        raise BadValue(f"training task {task.name} takes a {task.config.__name__}, not a {type(config).__name__}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
        learner = task.make_learner(config, processes)
    if not isinstance(learner, Learner):
        raise BadValue(f"training task {task.name}: {learner!r} is no Learner; derive its class from Learner")
    return learner


def train(
    config: RunConfig, folder: Path, *, on_step: OnStep | None = None, watch: Watch | None = None
) -> TrainingResult:
    """Train, or resume a stopped run; see `RunConfig` and the settings of each task."""
    return Trainer(config, folder_for(folder), watch).run(on_step, watch)
