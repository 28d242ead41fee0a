"""Tent: entropy of predictions minimised over the scales and shifts of batch norms (Wang et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from jostle.models.adaptation.batch_statistics import StatisticsAdapter, refuse_without_batch_norms
from jostle.models.adaptation.method import When, method
from jostle.models.adaptation.norm_layers import affine_parameters, find_batch_norms
from jostle.models.adaptation.options import Protocol


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


class EntropyAdapter(StatisticsAdapter):
    """Base of methods that take steps by the entropy of predictions, over the scales and shifts of batch norms."""

    predicts: ClassVar[Mapping[Protocol, When]] = {"episodic": "after", "online": "before"}

    def adapted_parameters(self) -> dict[str, nn.Parameter]:
        """Return the scales and shifts of batch norms, in one, two and three dimensions."""
        return affine_parameters(self.layers)

    def step(self, batch: Tensor, logits: Tensor) -> None:
        """Change the parameters by one step, from the logits of the batch."""
        raise NotImplementedError

    def adapt(self, batch: Tensor, frames: int, second_view: Tensor | None = None) -> Tensor:
        """Take the steps, and return the outputs before or after them."""
        with torch.enable_grad(), self.blending(frames):
            first = logits = self.run(batch)
            for number in range(self.settings.steps):
                if number:
                    logits = self.run(batch)
                self.step(batch, logits)
        if self.predicts[self.protocol] == "before":
            return first.detach()
        with torch.no_grad(), self.blending(frames):
            return self.run(batch)


@method("tent")
class Tent(EntropyAdapter):
    """Entropy of the predictions, minimised over the scales and shifts of batch norms with the video's statistics.

    Online, predictions precede the step, as in the paper; episodic ones follow it, since the next video forgets it.
    """

    settings_type = TentSettings

    def __init__(self, network: nn.Module, settings: Any, protocol: Protocol, **more: Any) -> None:
        refuse_without_batch_norms(find_batch_norms(network), "tent")
        super().__init__(network, settings, protocol, **more)

    def step(self, batch: Tensor, logits: Tensor) -> None:
        """Take a step of Adam."""
        self.adam_step(self.gradients(entropy(logits).mean()), lr=self.settings.lr)
