"""Tent: entropy of predictions minimised over the scales and shifts of batch norms (Wang et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from jostle.models.adaptation.batch_statistics import StatisticsAdapter, refuse_without_batch_norms
from jostle.models.adaptation.method import Protocol, When, method
from jostle.models.adaptation.norm_layers import affine_parameters, find_batch_norms
from jostle.models.adaptation.optimisers import adam_step


def entropy(logits: Tensor) -> Tensor:
    """Return the entropy of the softmax of each row, in nats.

    >>> round(float(entropy(torch.zeros(1, 4))), 4)
    1.3863
    """
    log_probabilities = logits.log_softmax(1)
    return -(log_probabilities.exp() * log_probabilities).sum(1)


@dataclass(frozen=True)
class TentSettings:
    """Settings of entropy minimisation by Tent."""

    lr: float = 1e-3  # of Adam
    steps: int = 1  # for each video
    pseudo_count: float = 0.0  # frames that the source's statistics count for, see `bn`; 0 as in the paper


@method("tent")
class Tent(StatisticsAdapter):
    """Entropy of the predictions, minimised over the scales and shifts of batch norms with the video's statistics.

    Online, predictions precede the step, as in the paper; episodic ones follow it, since the next video forgets it.
    """

    settings_type = TentSettings
    predicts: ClassVar[Mapping[Protocol, When]] = {"episodic": "after", "online": "before"}

    def __init__(self, network: nn.Module, settings: Any, protocol: Protocol, **more: Any) -> None:
        refuse_without_batch_norms(find_batch_norms(network), "tent")
        super().__init__(network, settings, protocol, **more)

    def adapted_parameters(self) -> dict[str, nn.Parameter]:
        """Return the scales and shifts of batch norms, in one, two and three dimensions."""
        return affine_parameters(self.layers)

    def adapt(self, batch: Tensor, frames: int, second_view: Tensor | None = None) -> Tensor:
        """Take the steps, and return the outputs before or after them."""
        with torch.enable_grad(), self.blending(frames):
            first = logits = self.run(batch)
            for number in range(self.settings.steps):
                if number:
                    logits = self.run(batch)
                gradients = self.gradients(entropy(logits).mean())
                adam_step(self.parameters, gradients, self.memory, lr=self.settings.lr)
        if self.predicts[self.protocol] == "before":
            return first.detach()
        with torch.no_grad(), self.blending(frames):
            return self.run(batch)
