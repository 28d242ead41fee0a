"""How long and how fast to learn: the settings, the rate of each step, and how fast the average forgets."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jostle.errors import BadValue


@dataclass(frozen=True)
class OptimiserConfig:
    """How long and how fast to learn; the defaults are ActionFormer's for THUMOS14.

    Attributes:
        lr: learning rate at its highest.
        warmup_epochs: epochs in which it rises from 0.
        epochs: epochs after the warm-up, in which it falls along a cosine; a run has `warmup_epochs` more.
        final_lr: what it falls to.
        weight_decay: of the weights of convolutions; norms, biases and scales do not decay.
        batch: videos in a step.
        accumulate: batches whose gradients are added up before a step.
        clip: largest norm of the gradient; 0 for no limit.
        average: decay of the running average of the weights that is evaluated and kept.
        average_ramp: let the decay rise to that with the steps, so that the average forgets the first weights at once.
            Without, as in the released programs, `average` to the power of the steps is left of them at the end: 46 %
            after 78 steps at 0.99.
    """

    lr: float = 1e-4
    warmup_epochs: int = 5
    epochs: int = 30
    final_lr: float = 1e-8
    weight_decay: float = 0.05
    batch: int = 2
    accumulate: int = 1
    clip: float = 1.0
    average: float = 0.999
    average_ramp: bool = True

    def __post_init__(self) -> None:
        for name in ("lr", "batch", "accumulate"):
            if not getattr(self, name) > 0:
                raise BadValue(f"optimiser: {name} must be above 0, got {getattr(self, name)}")
        for name in ("warmup_epochs", "epochs", "final_lr", "weight_decay", "clip"):
            if not getattr(self, name) >= 0:
                raise BadValue(f"optimiser: {name} must not be below 0, got {getattr(self, name)}")
        if self.warmup_epochs + self.epochs < 1:
            raise BadValue("optimiser: there must be at least one epoch")
        if not 0 <= self.average < 1:
            raise BadValue(f"optimiser: average lies in 0..1, 1 left out, got {self.average}")

    @property
    def all_epochs(self) -> int:
        """Epochs with the warm-up."""
        return self.warmup_epochs + self.epochs


def learning_rate(config: OptimiserConfig, step: int, steps_an_epoch: int) -> float:
    """The rate of a step, counted from 0: it rises evenly from 0, then falls along half a cosine.

    >>> config = OptimiserConfig(lr=1e-3, warmup_epochs=1, epochs=2)
    >>> [round(1e3 * learning_rate(config, step, 2), 5) for step in range(6)]
    [0.0, 1.0, 1.0, 0.85355, 0.50001, 0.14646]
    """
    warm, total = config.warmup_epochs * steps_an_epoch, config.all_epochs * steps_an_epoch
    if step < warm:
        return config.lr * step / max(warm - 1, 1)
    part = (step - warm) / max(total - warm, 1)
    return config.final_lr + 0.5 * (config.lr - config.final_lr) * (1 + math.cos(math.pi * part))


def decay_at(decay: float, update: int, *, ramp: bool) -> float:
    """The decay of an update of the average, counted from 1.

    >>> [round(decay_at(0.99, update, ramp=True), 3) for update in (1, 10, 90, 2000)]
    [0.091, 0.5, 0.9, 0.99]
    """
    return min(decay, update / (update + 10)) if ramp else decay


def first_share(config: OptimiserConfig, steps: int) -> float:
    """The share of the first weights that the average still has after so many steps.

    >>> round(first_share(OptimiserConfig(average=0.99, average_ramp=False), 78), 3)
    0.457
    """
    return math.prod(decay_at(config.average, update, ramp=config.average_ramp) for update in range(1, steps + 1))
