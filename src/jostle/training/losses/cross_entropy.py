"""Cross-entropy of clips, and of frames in sets (Shankar et al., 2021)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from jostle.training.loss import loss
from jostle.training.recognition_config import RecognitionConfig


@loss("own")
def own(logits: Tensor, labels: Tensor, config: RecognitionConfig) -> Tensor:
    """Mean over clips; of a set of frames the anchor alone."""
    return _cross_entropy(logits, labels, config).mean()


@loss("all", whole_sets=True)
def every_frame(logits: Tensor, labels: Tensor, config: RecognitionConfig) -> Tensor:
    """Mean over all frames of the sets."""
    return _cross_entropy(logits, labels, config).mean()


@loss("worst", whole_sets=True)
def worst_frame(logits: Tensor, labels: Tensor, config: RecognitionConfig) -> Tensor:
    """Mean over the frame of each set that has the largest loss."""
    return _cross_entropy(logits, labels, config).view(len(labels), -1).amax(1).mean()


def _cross_entropy(logits: Tensor, labels: Tensor, config: RecognitionConfig) -> Tensor:
    """Return the cross-entropy (B * S,) of each frame or clip."""
    each = labels.repeat_interleave(logits.shape[1])
    return F.cross_entropy(logits.flatten(0, 1), each, label_smoothing=config.smoothing, reduction="none")
