"""SAR: entropy of reliable predictions minimised with a flat surroundings, and recovery (Niu et al., 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from jostle.errors import BadValue
from jostle.models.adaptation.method import method
from jostle.models.adaptation.norm_layers import affine_parameters, find_norms
from jostle.models.adaptation.tent import EntropyAdapter, entropy

FULL_BATCH = 64  # clips that the paper's learning rates are for
SMALL_BATCH = 32  # below this, rates of networks with batch norms are doubled


@dataclass(frozen=True)
class SarSettings:
    """Settings of adaptation by SAR."""

    lr: float | None = None  # of stochastic gradient descent; None for the paper's rule, see `default_lr`
    momentum: float = 0.9
    steps: int = 1  # for each video
    pseudo_count: float = 0.0  # frames that the source's statistics count for, see `bn`
    entropy_share: float = 0.4  # E0 / ln C: predictions of higher entropy are left out
    radius: float = 0.05  # rho, the distance within which the loss should be flat
    decay: float = 0.9  # of the mean loss
    reset_below: float = 0.2  # mean loss below which the network returns to its source
    frozen_share: float = 0.25  # normalisation layers at the end of the network that stay as they are


def default_lr(batch: int, *, batch_norms: bool) -> float:
    """Return the paper's learning rate for a number of clips.

    >>> default_lr(64, batch_norms=True), default_lr(1, batch_norms=True), default_lr(1, batch_norms=False)
    (0.00025, 1.5625e-05, 3.125e-05)
    """
    doubled = 2 if batch == 1 else 1
    if not batch_norms:
        return doubled * 1e-3 * batch / FULL_BATCH
    return doubled * 2.5e-4 * (2 * batch / FULL_BATCH if batch < SMALL_BATCH else 1)


@method("sar")
class Sar(EntropyAdapter):
    """Entropy of reliable predictions, minimised where the loss is flat; the network returns to its source in time.

    It changes scales and shifts of batch, layer and group norms, except in the last layers. Online, predictions precede
    the step, as in the paper; episodic ones follow it.
    """

    settings_type = SarSettings

    def adapted_parameters(self) -> dict[str, nn.Parameter]:
        """Return the scales and shifts of normalisation layers, except the last ones."""
        norms = find_norms(self.network)
        count = len(norms) - int(self.settings.frozen_share * len(norms))
        self._has_batch_norms = any(isinstance(layer, _BatchNorm) for layer in norms.values())
        parameters = affine_parameters(dict(list(norms.items())[:count]))
        if not parameters:
            raise BadValue(
                "adaptation by sar changes batch, layer and group norms, and the network has none with scales and "
                "shifts, or all are frozen; take vitta"
            )
        return parameters

    def step(self, batch: Tensor, logits: Tensor) -> None:
        """Take one step by the gradient at the worst place nearby."""
        settings, limit = self.settings, self.settings.entropy_share * math.log(logits.shape[1])
        entropies = entropy(logits)
        reliable = entropies < limit
        if not reliable.any():
            return
        gradients = self.gradients(entropies[reliable].mean())
        norm = torch.stack([value.norm() for value in gradients.values()]).norm()
        here = {name: value.detach().clone() for name, value in self.parameters.items()}
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.add_(settings.radius * gradients[name] / (norm + 1e-12))
        entropies = entropy(self.run(batch))[reliable]
        still = entropies < limit
        loss = entropies[still].mean() if still.any() else None
        there = None if loss is None else self.gradients(loss)
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_(here[name])
        if loss is None or there is None:
            return
        lr = settings.lr or default_lr(len(batch), batch_norms=self._has_batch_norms)
        self.sgd_step(there, lr=lr, momentum=settings.momentum)
        mean, new = self.memory.get("mean_loss"), loss.detach()
        mean = new if mean is None else settings.decay * mean + (1 - settings.decay) * new
        self.memory["mean_loss"] = mean
        if mean < settings.reset_below:
            self.load_state(None)
