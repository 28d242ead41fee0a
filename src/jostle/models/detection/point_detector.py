"""Base of detectors with points on a pyramid: ActionFormer, TriDet, TemporalMaxer.

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
    """Base of detectors that predict classes and boundary distances at every point."""

    known_from_opentad: ClassVar[bool] = True
    loss_normalizer: Tensor

    def __init__(self, config: C) -> None:
        super().__init__(config)
        # State that the originals keep outside of their checkpoints.
        self.register_buffer("loss_normalizer", torch.tensor(config.normaliser), persistent=False)
        self._fast: Callable[..., Outputs] | None = None

    def padded(self, length: int) -> int:
        """Return the length that the original pads `length` steps to."""
        raise NotImplementedError

    def assign(self, outputs: Outputs, actions: Actions, *, radius: float | None) -> Targets:
        """Return the targets of the points; `radius` in strides around centres, None for whole actions."""
        return assign(outputs.points, actions, outputs.mask, classes=self.config.classes, radius=radius)

    def loss(self, outputs: Outputs, actions: Actions) -> Losses:
        """Compute focal and distance-IoU losses, over the running number of positives.

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
        """Decode the candidates of each video, before suppression."""
        return find_candidates(outputs, self.config, self.offsets_at)

    def normaliser(self, positives: Tensor) -> Tensor:
        """Return the running number of positives with this batch in it."""
        count = self.counted(positives).clamp(min=1).to(self.loss_normalizer)
        moved = MOMENTUM * self.loss_normalizer + (1 - MOMENTUM) * count
        if self.training:
            self.loss_normalizer.copy_(moved.detach())
        return moved

    def smoothed(self, classes: Tensor) -> Tensor:
        """Apply label smoothing to class targets."""
        share = self.config.label_smoothing
        return classes * (1 - share) + share / (classes.shape[-1] + 1)

    def losses(self, classification: Tensor, regression: Tensor, targets: Targets) -> Losses:
        """Return the parts and their weighted sum."""
        total = classification + self.config.loss_weight * regression
        return Losses(total, classification, regression, targets.positive.sum())

    def suppress(self, candidates: Candidates, *, seconds_a_step: float) -> Candidates:
        """Apply soft-NMS, and voting for class-agnostic suppression."""
        return suppress(candidates, self.config)

    def compiled_for(self, features: Tensor) -> tuple[Any, Tensor]:
        """Return the compiled network if settings and GPU allow it, with features padded to a few lengths."""
        if not (self.config.compiled and features.is_cuda):
            return self.forward, features
        # A few lengths instead of any, so that few graphs are compiled. Never beyond the padding: it has a say.
        length = features.shape[-1]
        padded_length = min(-(-length // BUCKET) * BUCKET, self.padded(length))
        self._fast = self._fast or torch.compile(self.forward, dynamic=False)
        return self._fast, F.pad(features, (0, padded_length - length))
