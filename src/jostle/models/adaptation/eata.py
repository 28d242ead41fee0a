"""EATA: entropy of reliable and new predictions minimised, held near the source (Niu et al., 2022)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.adaptation.batch_statistics import refuse_without_batch_norms
from jostle.models.adaptation.method import method
from jostle.models.adaptation.norm_layers import find_batch_norms
from jostle.models.adaptation.options import Protocol
from jostle.models.adaptation.tent import EntropyAdapter, entropy

FISHER = "fisher."  # prefix of the importance of parameters among the source statistics


@dataclass(frozen=True)
class EataSettings:
    """Settings of adaptation by EATA."""

    lr: float = 2.5e-4  # of stochastic gradient descent
    momentum: float = 0.9
    steps: int = 1  # for each video
    pseudo_count: float = 0.0  # frames that the source's statistics count for, see `bn`
    entropy_share: float = 0.4  # E0 / ln C: predictions of higher entropy are left out
    redundancy: float = 0.05  # predictions whose cosine with the mean prediction is not below this are left out
    decay: float = 0.9  # of the mean prediction
    fisher_weight: float = 2000.0  # of the distance to the source
    source_videos: int = 2000  # clean videos that the importance of parameters is measured on, at most


@method("eata")
class Eata(EntropyAdapter):
    """Entropy of predictions that are reliable and unlike those before, minimised near the source.

    Online, predictions precede the step, as in the paper; episodic ones follow it.
    """

    settings_type = EataSettings
    needs_source = "the importance of its parameters"

    def __init__(self, network: nn.Module, settings: Any, protocol: Protocol, **more: Any) -> None:
        refuse_without_batch_norms(find_batch_norms(network), "eata")
        super().__init__(network, settings, protocol, **more)

    def measure_source(self, clips: Iterable[tuple[Tensor, int]]) -> dict[str, Tensor]:
        """Return the diagonal Fisher information of the parameters, by the classes predicted for clean clips."""
        total = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        count = 0
        with self.state(None):
            for batch, frames in clips:
                with torch.enable_grad(), self.blending(frames):
                    logits = self.run(batch)
                    gradients = self.gradients(F.cross_entropy(logits, logits.argmax(1)))
                total = {name: value + gradients[name] ** 2 for name, value in total.items()}
                count += 1
        return {f"{FISHER}{name}": value / max(count, 1) for name, value in total.items()}

    def step(self, batch: Tensor, logits: Tensor) -> None:
        """Take a step, unless no prediction counts."""
        loss, settings = self._loss(logits), self.settings
        if loss is not None:
            self.sgd_step(self.gradients(loss), lr=settings.lr, momentum=settings.momentum)

    def _loss(self, logits: Tensor) -> Tensor | None:
        """Return the weighted entropy of the predictions that count, and the distance to the source; None for none."""
        entropies, limit = entropy(logits), self.settings.entropy_share * math.log(logits.shape[1])
        counts = entropies < limit
        probabilities, mean = logits.detach().softmax(1), self.memory.get("mean_prediction")
        if mean is not None:
            counts &= F.cosine_similarity(mean[None], probabilities).abs() < self.settings.redundancy
        if not counts.any():
            return None
        new, decay = probabilities[counts].mean(0), self.settings.decay
        self.memory["mean_prediction"] = new if mean is None else decay * mean + (1 - decay) * new
        weights = torch.exp(limit - entropies.detach())
        loss = (weights * entropies)[counts].mean()
        for name, value in self.parameters.items():
            distance = (value - self._originals[name]) ** 2
            loss = loss + self.settings.fisher_weight * (self.source[f"{FISHER}{name}"] * distance).sum()
        return loss
