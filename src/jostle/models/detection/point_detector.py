"""Detectors that answer at the points of a pyramid: ActionFormer, TriDet, TemporalMaxer.

Their author writes `forward` and `padded`, and where they differ `assign`, `loss` and `offsets_at`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.models.detection.blocks.assignment import Actions, Targets, assign
from jostle.models.detection.blocks.losses import distance_iou, focal
from jostle.models.detection.config import PointConfig
from jostle.models.detection.decoding import find_candidates, suppress
from jostle.models.detection.feature_detector import FeatureDetector
from jostle.models.detection.outputs import Candidates, Losses, Outputs

C = TypeVar("C", bound=PointConfig)
BUCKET = 384  # steps that compiled sequences are rounded up to
MOMENTUM = 0.9  # of the running number of positives


class PointDetector(FeatureDetector[C]):
    """A detector whose every point says which class goes on, and how far away it begins and ends."""

    known_from_opentad: ClassVar[bool] = True
    loss_normalizer: Tensor

    def __init__(self, config: C) -> None:
        super().__init__(config)
        # State that the originals keep outside of their checkpoints.
        self.register_buffer("loss_normalizer", torch.tensor(config.normaliser), persistent=False)
        self._fast: Callable[..., Outputs] | None = None

    def padded(self, length: int) -> int:
        """Steps to which the original pads a sequence of `length` steps."""
        raise NotImplementedError

    def assign(self, outputs: Outputs, actions: Actions, *, radius: float | None) -> Targets:
        """What the points should say; `radius` is in strides around an action's centre, None for all of it."""
        return assign(outputs.points, actions, outputs.mask, classes=self.config.classes, radius=radius)

    def loss(self, outputs: Outputs, actions: Actions) -> Losses:
        """Focal loss of the classes and distance-IoU loss of the ends, over the running number of positives.

        In training mode the number moves on by this batch, before it is used.
        """
        targets = self.assign(outputs, actions, radius=self.config.centre_radius)
        normaliser = self.normaliser(targets.positive.sum())
        classes = self.smoothed(targets.classes)
        each = focal(outputs.logits.float(), classes) * outputs.mask[..., None]
        apart = distance_iou(outputs.offsets.float(), targets.offsets)
        regression = torch.where(targets.positive, apart, 0.0).sum() / normaliser
        return self.losses(each.sum() / normaliser, regression, targets)

    def decode(self, outputs: Outputs) -> list[Candidates]:
        """Candidates of each video, before suppression."""
        return find_candidates(outputs, self.config, self.offsets_at)

    def normaliser(self, positives: Tensor) -> Tensor:
        """The running number of positives with this batch in it."""
        seen = self.counted(positives).clamp(min=1).to(self.loss_normalizer)
        moved = MOMENTUM * self.loss_normalizer + (1 - MOMENTUM) * seen
        if self.training:
            self.loss_normalizer.copy_(moved.detach())
        return moved

    def smoothed(self, classes: Tensor) -> Tensor:
        """Class targets with a share of them spread over all classes."""
        share = self.config.label_smoothing
        return classes * (1 - share) + share / (classes.shape[-1] + 1)

    def losses(self, classification: Tensor, regression: Tensor, targets: Targets) -> Losses:
        """The parts and their weighted sum."""
        total = classification + self.config.loss_weight * regression
        return Losses(total, classification, regression, targets.positive.sum())

    def suppressed(self, found: Candidates, *, seconds_a_step: float) -> Candidates:
        """What soft-NMS leaves, and voting where classes are not told apart."""
        return suppress(found, self.config)

    def compiled_for(self, features: Tensor) -> tuple[Any, Tensor]:
        """The compiled network where settings ask for it and a GPU is there, and features of one of a few lengths."""
        if not (self.config.compiled and features.is_cuda):
            return self.forward, features
        # A few lengths instead of any, so that few graphs are compiled. Never beyond the padding: it has a say.
        length = features.shape[-1]
        wanted = min(-(-length // BUCKET) * BUCKET, self.padded(length))
        self._fast = self._fast or torch.compile(self.forward, dynamic=False)
        return self._fast, F.pad(features, (0, wanted - length))
