"""The training loop: draws keyed by step and video, one checkpoint, and the same weights however often it was stopped.

Under `torchrun` every process takes its share of each batch; gradients are added up and the running number of
positives counts those of all, so that the result is that of one process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.detectors.blocks.assignment import Actions
from jostle.detectors.checkpoints import write_weights
from jostle.detectors.detector import Detector, detectors, load_detector
from jostle.detectors.outputs import Outputs
from jostle.detectors.tridet import TriDet
from jostle.errors import BadValue, DataError, SourceChanged
from jostle.extraction.store import extractor_of
from jostle.seeds import key_for, rng_for
from jostle.settings import settings_as_dict
from jostle.training.config import TrainingConfig
from jostle.training.consistency import consistency_loss
from jostle.training.frame_drop import FrameDrop
from jostle.training.optimisation import Average, learning_rate, make_optimiser
from jostle.training.processes import Processes
from jostle.training.selection import Selection, split_videos
from jostle.training.state import Log, Progress, load_state, save_state
from jostle.training.videos import Sample, Video, crop

OnStep = Callable[[int, int], None]


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
    """

    folder: Path
    weights: Path
    score: float | None
    epoch: int
    steps: int
    skipped: int


class Trainer:
    """One run in one folder.

    Args:
        config: what to train.
        folder: where checkpoints, log and weights go; a run that was stopped there goes on.
    """

    def __init__(self, config: TrainingConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.processes = Processes.join(config.device)
        self.detector = self._made_detector()
        truth_classes, self.videos, self.selection = self._made_data()
        self.detector.config = dataclasses.replace(self.detector.config, class_names=truth_classes)
        self.drop = FrameDrop.of(config.data, self.videos, config.seed, self.processes.device)
        self.optimiser = make_optimiser(self.detector, config.optimiser)
        self.average = Average(self.detector, config.optimiser.average)
        self.progress = Progress(loss_normalizer=float(self.detector.loss_normalizer))
        if config.optimiser.batch % self.processes.count:
            share = f"{config.optimiser.batch} videos over {self.processes.count} processes"
            raise BadValue(f"a batch cannot be shared evenly: {share}; change optimiser.batch")
        self.steps_an_epoch = len(self.videos) // (config.optimiser.batch * config.optimiser.accumulate)
        if not self.steps_an_epoch:
            raise BadValue(
                f"{len(self.videos)} training videos are fewer than one step needs, "
                f"{config.optimiser.batch} x {config.optimiser.accumulate}; lower batch or accumulate"
            )
        # TriDet cuts actions at the edge of a crop, the others let them reach half a window beyond it.
        data = config.data
        self.slack = 0.0 if isinstance(self.detector, TriDet) else 0.5 * data.window / data.stride

    def run(self, on_step: OnStep | None = None) -> Trained:
        """Train to the end, from wherever the folder stands."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = Log(self.folder, tensorboard=self.config.tensorboard and self.processes.first)
        self._resume(log)
        total = self.config.optimiser.all_epochs * self.steps_an_epoch
        saved = time.monotonic()
        with torch.random.fork_rng(devices=[self.processes.device] if self.processes.device.type == "cuda" else []):
            while self.progress.step < total:
                epoch = self.progress.step // self.steps_an_epoch
                self._step(log, epoch)
                if on_step is not None:
                    on_step(self.progress.step, total)
                if self.progress.step % self.steps_an_epoch == 0:
                    self._close_epoch(log, epoch, last=self.progress.step == total)
                elif time.monotonic() - saved < self.config.save_every:
                    continue
                self._save()
                saved = time.monotonic()
        return self._finish()

    def _step(self, log: Log, epoch: int) -> None:
        config, step = self.config, self.progress.step
        torch.manual_seed(key_for(config.seed, "step", step) % 2**63)
        self.detector.train()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(config.optimiser, step, self.steps_an_epoch)
        self.optimiser.zero_grad(set_to_none=True)
        before = self.detector.loss_normalizer.clone()
        parts: dict[str, float] = {}
        for samples in self._batches(epoch, step % self.steps_an_epoch):
            losses = self._losses(samples)
            (losses["total"] / config.optimiser.accumulate).backward()  # type: ignore[no-untyped-call]
            for name, value in losses.items():
                parts[name] = parts.get(name, 0.0) + float(value.detach()) / config.optimiser.accumulate
        parameters = [p for p in self.detector.parameters() if p.grad is not None]
        self.processes.add_up([p.grad for p in parameters if p.grad is not None])
        limit = config.optimiser.clip or torch.inf
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
        self.progress.step += 1
        if not (np.isfinite(norm) and all(np.isfinite(value) for value in parts.values())):
            self.detector.loss_normalizer.copy_(before)
            self._skip(log)
            return
        self.progress.skipped_in_a_row = 0
        self.optimiser.step()
        self.average.update(self.detector)
        row = {"event": "step", "step": self.progress.step, "epoch": epoch + 1, "gradient": norm, **parts}
        if self.processes.first:
            log.write(row)
            log.plot(self.progress.step, parts | {"gradient": norm, "lr": self.optimiser.param_groups[0]["lr"]})

    def _losses(self, samples: list[Sample]) -> dict[str, Tensor]:
        """The losses of a batch; the detector's own, and how far its clean and corrupted answers are apart."""
        config, device = self.config, self.processes.device
        actions = Actions.of([(sample.segments, sample.labels) for sample in samples], device)
        half = torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bfloat16")
        inputs = {"clean": [sample.features for sample in samples]}
        if config.data.robust:
            inputs["corrupted"] = [sample.corrupted for sample in samples if sample.corrupted is not None]
        learned = ("clean", "corrupted") if config.data.learn_from == "both" else (config.data.learn_from,)
        outputs: dict[str, Outputs] = {}
        for name in inputs if config.compares else learned:
            features, lengths = self.detector.batch(inputs[name])
            with half:
                outputs[name] = self.detector(features, lengths)
        running = self.detector.loss_normalizer.clone()
        own = []
        for name in learned:
            self.detector.loss_normalizer.copy_(running)  # it moves once a step, however many inputs are learned from
            own.append(self.detector.loss(outputs[name], actions))
        made = {
            "classification": torch.stack([losses.classification for losses in own]).mean(),
            "regression": torch.stack([losses.regression for losses in own]).mean(),
        }
        total = torch.stack([losses.total for losses in own]).mean()
        if config.compares:
            apart = consistency_loss(self.detector, outputs["clean"], outputs["corrupted"], actions, config.consistency)
            made["consistency"] = apart
            total = total + config.consistency.weight * apart
            if config.consistency.released_faults:
                self.detector.normaliser(own[0].positives)
        return made | {"total": total}

    def _batches(self, epoch: int, step: int) -> Iterator[list[Sample]]:
        """This process's share of the batches of a step; the last videos that fill no step are left out."""
        config = self.config
        order = rng_for(config.seed, "order", epoch).permutation(len(self.videos))
        size, count = config.optimiser.batch, config.optimiser.accumulate
        for i in range(count):
            first = (step * count + i) * size
            rows = order[first : first + size][self.processes.rank :: self.processes.count]
            videos = [self.videos[row] for row in rows]
            if self.drop is not None:
                videos = self.drop.on(videos, epoch)
            yield [
                crop(
                    video,
                    longest=self.detector.config.max_length,
                    config=config.data,
                    slack=self.slack,
                    seed=config.seed,
                    epoch=epoch,
                    view=view,
                )
                for view in range(config.data.views)
                for video in videos
            ]

    def _skip(self, log: Log) -> None:
        progress = self.progress
        progress.skipped += 1
        progress.skipped_in_a_row += 1
        if self.processes.first:
            log.write({"event": "skipped", "step": progress.step, "why": "the loss or its gradient is not finite"})
        if progress.skipped_in_a_row >= self.config.bad_steps:
            raise DataError(
                f"{progress.skipped_in_a_row} steps in a row had a loss or gradient that is not finite; the last good "
                f"checkpoint is in {self.folder}; lower the learning rate, or look at the features",
                fault="F95",
            )

    def _close_epoch(self, log: Log, epoch: int, *, last: bool) -> None:
        if self.selection is None or not (last or (epoch + 1) % self.config.score_every == 0):
            return
        value = self.selection.score(self.detector, self.average)
        row = {"event": "score", "step": self.progress.step, "epoch": epoch + 1, self.config.chosen_by: value}
        self.progress.scores.append(row)
        if self.processes.first:
            log.write(row)
            log.plot(self.progress.step, {f"select/{self.config.chosen_by}": value})
        if self.progress.best is None or value > self.progress.best:
            self.progress.best, self.progress.best_epoch = value, epoch + 1
            if self.processes.first:
                self._write_weights("best.safetensors")

    def _save(self) -> None:
        self.progress.loss_normalizer = float(self.detector.loss_normalizer)
        if self.processes.first:
            save_state(self.folder, self.detector, self.optimiser, self.average, self.progress)

    def _resume(self, log: Log) -> None:
        fingerprint = self._fingerprint()
        self.progress.fingerprint = fingerprint
        found = load_state(self.folder, self.detector, self.optimiser, self.average)
        if found is None:
            if self.processes.first:
                described = {
                    "config": settings_as_dict(self.config),
                    "torch": torch.__version__,
                    "fingerprint": fingerprint,
                    "videos": {
                        "learn": len(self.videos),
                        "choose": len(self.selection.videos) if self.selection else 0,
                    },
                }
                (self.folder / "train.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
            return
        if found.fingerprint != fingerprint:
            raise SourceChanged(
                f"{self.folder} holds a run with other settings or data; train into another folder, or remove it",
                fault="F72",
            )
        self.progress = found
        self.detector.loss_normalizer.fill_(found.loss_normalizer)
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
        )

    def _write_weights(self, name: str) -> None:
        described = {
            "detector": self.config.detector,
            "settings": json.dumps(dict(self.config.settings)),
            "classes": json.dumps(self.detector.config.class_names),
            "seed": str(self.config.seed),
        }
        made_by = extractor_of(Path(self.config.data.features))
        if made_by is not None:  # then `detect` knows how to look at video
            described["extractor"] = made_by
        write_weights(self.average.weights, self.folder / name, metadata=described)

    def _made_detector(self) -> Detector[Any]:
        config = self.config
        settings = dict(config.settings)
        made = detectors[config.detector]
        wide = config.compares and config.consistency.released_faults and config.consistency.selection != "action"
        if wide and issubclass(made.model, TriDet):
            settings["centre_radius"] = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
            built = load_detector(config.detector, weights=config.weights, **settings)
        built.positives_of_all = self.processes.total
        return built.to(self.processes.device)

    def _made_data(self) -> tuple[tuple[str, ...], list[Video], Selection | None]:
        names, learn, held_out = split_videos(self.config, self.detector.config)
        return names, learn, Selection.of(self.config, held_out) if held_out else None

    def _fingerprint(self) -> str:
        """Of all that decides the result: the settings, the videos and their features."""
        deciding = settings_as_dict(self.config)
        for name in ("device", "save_every", "tensorboard"):
            del deciding[name]
        made = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode())
        for video in [*self.videos, *(self.selection.videos if self.selection else [])]:
            made.update(video.name.encode("utf-8", "surrogatepass") + video.segments.tobytes() + video.labels.tobytes())
            for features in (video.features, video.corrupted):
                if features is not None:
                    made.update(f"{features.shape} {features.sum(dtype=np.float64):.9e}".encode())
        if self.drop is not None:
            made.update(self.drop.fingerprint().encode())
        for name, value in self.detector.state_dict().items():
            made.update(f"{name} {value.double().sum():.9e}".encode())
        return made.hexdigest()


def train(config: TrainingConfig, folder: Path, *, on_step: OnStep | None = None) -> Trained:
    """Train a detector, or go on with a run that was stopped; see `TrainingConfig`."""
    if folder.exists() and not folder.is_dir():
        raise BadValue(f"{folder} is a file; name a folder")
    os.makedirs(folder, exist_ok=True)
    return Trainer(config, folder).run(on_step)
