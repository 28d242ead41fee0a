"""Training of detectors on features: the detector's own losses and the consistency loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jostle.core.random import key_for
from jostle.errors import BadValue
from jostle.features.store import read_extractor_name
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import detectors, make_detector
from jostle.models.detection.feature_detector import FeatureDetector, PointDetector
from jostle.models.detection.outputs import Outputs
from jostle.models.detection.tridet import TriDet
from jostle.models.devices import half_on_gpu
from jostle.training.consistency import consistency_loss
from jostle.training.detection_config import TrainingConfig
from jostle.training.distributed import Processes
from jostle.training.feature_crops import FeatureSample, crop
from jostle.training.frame_drop import FrameDrop
from jostle.training.learner import Learner, Losses, detector_metadata, mean_losses, steps_in
from jostle.training.optimisation import Average
from jostle.training.selection import Selection, split_videos


class DetectionLearner(Learner):
    """A detector and its training videos."""

    def __init__(self, config: TrainingConfig, processes: Processes) -> None:
        self.config, self.processes, self.name = config, processes, config.detector
        self.model: FeatureDetector[Any] = self._build_model()
        names, self.videos, held_out = split_videos(config, self.model.config)
        self.model.config = dataclasses.replace(self.model.config, class_names=names)
        self.selection = Selection.of(config, held_out) if held_out else None
        self.drop = FrameDrop.of(config.data, self.videos, config.seed, processes.device)
        self.steps_an_epoch = steps_in(len(self.videos), "videos", config.optimiser, processes)
        self.counts = {"learn": len(self.videos), "choose": len(self.selection.videos) if self.selection else 0}
        self.chosen_by = config.chosen_by
        stride, window = config.data.grid
        self.slack = 0.0 if self.model.cuts_at_edges else 0.5 * window / stride

    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """Yield the losses of each batch of a step."""
        for samples in self.batches(epoch, step):
            yield self.losses_of(samples)

    def losses_of(self, samples: list[FeatureSample]) -> Losses:
        """Return the losses of a batch: the detector's own, and the consistency of clean and corrupted outputs."""
        config, device = self.config, self.processes.device
        actions = Actions.of([(sample.segments, sample.labels) for sample in samples], device)
        half = half_on_gpu(config.precision, device)
        inputs = {"clean": [sample.features for sample in samples]}
        if config.data.robust:
            inputs["corrupted"] = [sample.corrupted for sample in samples if sample.corrupted is not None]
        learned = ("clean", "corrupted") if config.data.learn_from == "both" else (config.data.learn_from,)
        outputs: dict[str, Outputs] = {}
        for name in inputs if config.compares else learned:
            features, lengths = self.model.batch(inputs[name])
            with half:
                outputs[name] = self.model(features, lengths)
        running, own = self.running, []
        for name in learned:
            self.running = running  # it is updated once a step, however many inputs there are
            own.append(self.model.loss(outputs[name], actions))
        losses = mean_losses(own)
        total = losses["total"]
        if config.compares:
            apart = consistency_loss(self.model, outputs["clean"], outputs["corrupted"], actions, config.consistency)
            losses["consistency"] = apart
            total = total + config.consistency.weight * apart
            if config.consistency.reproduce_bugs and isinstance(self.model, PointDetector):
                self.model.normaliser(own[0].positives)
        return losses | {"total": total}

    def batches(self, epoch: int, step: int) -> Iterator[list[FeatureSample]]:
        """Yield this process's share of a step's batches; an incomplete last step is dropped."""
        config, longest = self.config, self.model.config.max_length
        for rows in self.batch_rows(len(self.videos), epoch, step):
            videos = [self.videos[row] for row in rows]
            if self.drop is not None:
                videos = self.drop.draw(videos, epoch)
            yield [
                crop(video, config.data, longest=longest, slack=self.slack, seed=config.seed, epoch=epoch, view=view)
                for view in range(config.data.views)
                for video in videos
            ]

    def score(self, average: Average) -> float | None:
        """Return the mean average precision on the held-out videos."""
        return None if self.selection is None else self.selection.score(self.model, average)

    def metadata(self) -> dict[str, str]:
        """Return the detector, its settings and classes, and the extractor of its features."""
        metadata = detector_metadata(self.config, self.model)
        extractor = read_extractor_name(Path(self.config.data.features))
        # It lets `detect` extract features from video.
        return metadata if extractor is None else metadata | {"extractor": extractor}

    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield the videos and their features."""
        for video in [*self.videos, *(self.selection.videos if self.selection else [])]:
            yield video.name.encode("utf-8", "surrogatepass") + video.segments.tobytes() + video.labels.tobytes()
            for features in (video.features, video.corrupted):
                if features is not None:
                    yield f"{features.shape} {features.sum(dtype=np.float64):.9e}".encode()
        if self.drop is not None:
            yield self.drop.fingerprint().encode()

    @property
    def running(self) -> float:
        """The running number of positives, for detectors that keep one."""
        return float(self.model.loss_normalizer) if isinstance(self.model, PointDetector) else 0.0

    @running.setter
    def running(self, value: float) -> None:
        if isinstance(self.model, PointDetector):
            self.model.loss_normalizer.fill_(value)

    def _build_model(self) -> FeatureDetector[Any]:
        config = self.config
        settings = dict(config.settings)
        entry = detectors[config.detector]
        wide = config.compares and config.consistency.reproduce_bugs and config.consistency.selection != "action"
        if wide and issubclass(entry.model, TriDet):
            settings["centre_radius"] = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
            built = make_detector(config.detector, weights=config.weights, **settings)
        if not isinstance(built, FeatureDetector):
            raise BadValue(f"{config.detector} takes {built.looks_at}; this task trains detectors on features")
        built.positives_of_all = self.processes.total
        return built.to(self.processes.device)
