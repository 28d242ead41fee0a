"""The training loop: draws keyed by step and content, one checkpoint, the same weights however often it was stopped.

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

import numpy as np
import torch

from jostle.core.config import settings_as_dict
from jostle.core.random import key_for
from jostle.errors import DataError, SourceChanged
from jostle.io.files.atomic import write_text
from jostle.io.files.lock import Ownership
from jostle.models.checkpoints import write_weights
from jostle.training.checkpoint import Log, Progress, load_state, save_state
from jostle.training.detection import DetectionLearner
from jostle.training.detection_config import TrainingConfig
from jostle.training.distributed import Processes
from jostle.training.end_to_end import EndToEndLearner
from jostle.training.end_to_end_config import FrameTrainingConfig
from jostle.training.events import Intent, Moment, Watch
from jostle.training.inspection import InspectionLearner
from jostle.training.inspection_config import InspectionConfig
from jostle.training.learner import Learner, folder_for
from jostle.training.optimisation import Average, make_optimiser
from jostle.training.recognition import RecognitionLearner
from jostle.training.recognition_config import RecognitionConfig
from jostle.training.schedule import learning_rate

OnStep = Callable[[int, int], None]
Config = TrainingConfig | RecognitionConfig | FrameTrainingConfig | InspectionConfig


@dataclass(frozen=True)
class Trained:
    """A finished run.

    Attributes:
        folder: where it lies.
        weights: the averaged weights of the best epoch, or of the last where none was chosen.
        score: of that epoch, None where none was chosen.
        epoch: which one it was, from 1.
        steps: optimisation steps that were taken.
        skipped: steps that were left out, as their loss or gradient was not finite.
        chosen_by: what that score is called.
        first_loss: mean loss of the first epoch.
        last_loss: and of the last.
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


class Trainer:
    """One run in one folder.

    Args:
        config: what to train.
        folder: where checkpoints, log and weights go; a run that was stopped there goes on.
        watch: told how far the making of what is learned from has come.
    """

    def __init__(self, config: Config, folder: Path, watch: Watch | None = None) -> None:
        self.config, self.folder = config, folder
        self.processes = Processes.join(config.device)
        self.learner = learner_of(config, self.processes, watch)
        self.optimiser = make_optimiser(self.learner.model, config.optimiser, self.learner.rates)
        self.average = Average(self.learner.model, config.optimiser.average, ramp=config.optimiser.average_ramp)
        self.progress = Progress(loss_normalizer=self.learner.running)
        self.steps_an_epoch = self.learner.steps_an_epoch

    def run(self, on_step: OnStep | None = None, watch: Watch | None = None) -> Trained:
        """Train to the end, from wherever the folder stands.

        Raises:
            ResourceError: if another process trains into the folder, or the disk is full.
        """
        with Ownership(self.folder) if self.processes.first else nullcontext():
            return self._run(on_step, watch)

    def _run(self, on_step: OnStep | None, watch: Watch | None) -> Trained:
        log = Log(self.folder, tensorboard=self.config.tensorboard and self.processes.first)
        self._resume(log)
        intent = self._intent()
        total = intent.steps
        if intent.warning and self.processes.first:
            warnings.warn(intent.warning, stacklevel=4)
            log.write({"event": "warning", "step": self.progress.step, "message": intent.warning})
        if watch is not None:
            watch(intent)
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
                    watch(self._moment(epoch, total))
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

    def _intent(self) -> Intent:
        counts = self.learner.counts
        return Intent(
            self.learner.name,
            self.config.optimiser,
            self.steps_an_epoch,
            counts["learn"],
            counts["choose"],
            self.progress.step,
        )

    def _moment(self, epoch: int, total: int) -> Moment:
        progress, name = self.progress, self.learner.chosen_by
        loss = progress.epoch_loss / progress.epoch_steps if progress.epoch_steps else progress.last_loss
        score = progress.scores[-1][name] if progress.scores else None
        return Moment(progress.step, total, epoch + 1, loss, name, score, progress.best)

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
        found = load_state(self.folder, self.learner.model, self.optimiser, self.average)
        if found is None:
            if self.processes.first:
                described = {
                    "config": settings_as_dict(self.config),
                    "torch": torch.__version__,
                    "fingerprint": fingerprint,
                    "videos": self.learner.counts,
                }
                write_text(self.folder / "train.json", [json.dumps(described, indent=2), "\n"])
                log.trim(0)
            return
        if found.fingerprint != fingerprint:
            raise SourceChanged(
                f"{self.folder} holds a run with other settings or data; train into another folder, or remove it",
                fault="F72",
            )
        self.progress = found
        self.learner.running = found.loss_normalizer
        if self.processes.first:
            log.trim(found.step)

    def _finish(self) -> Trained:
        if self.processes.first:
            self._write_weights("last.safetensors")
        chosen = "best.safetensors" if self.progress.best is not None else "last.safetensors"
        return Trained(
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
        write_weights(self.average.weights, self.folder / name, metadata=self.learner.described())

    def _fingerprint(self) -> str:
        """Of all that decides the result: the settings, the data and the first weights."""
        deciding = settings_as_dict(self.config)
        for name in ("device", "save_every", "tensorboard"):
            del deciding[name]
        made = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode())
        for part in self.learner.deciding():
            made.update(part)
        for name, value in self.learner.model.state_dict().items():
            made.update(f"{name} {value.double().sum():.9e}".encode())
        return made.hexdigest()


def learner_of(config: Config, processes: Processes, watch: Watch | None = None) -> Learner:
    """What the settings are about."""
    if isinstance(config, InspectionConfig):
        return InspectionLearner(config, processes, watch)
    if isinstance(config, RecognitionConfig):
        return RecognitionLearner(config, processes)
    if isinstance(config, FrameTrainingConfig):
        return EndToEndLearner(config, processes)
    return DetectionLearner(config, processes)


def train(config: Config, folder: Path, *, on_step: OnStep | None = None, watch: Watch | None = None) -> Trained:
    """Train, or go on with a run that was stopped; see `TrainingConfig`, `RecognitionConfig`, `InspectionConfig`."""
    return Trainer(config, folder_for(folder), watch).run(on_step, watch)
