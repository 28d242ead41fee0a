"""Optimiser settings, learning-rate schedules and the decay of the weight average."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from jostle.errors import BadValue

Method = Literal["adamw", "adam", "sgd"]
Schedule = Literal["cosine", "constant", "drops", "restarts"]
Decays = Literal["convolutions", "all"]
DROP = 0.1  # what a drop leaves of the rate


@dataclass(frozen=True)
class OptimiserConfig:
    """Optimiser settings; the defaults are ActionFormer's for THUMOS14.

    Attributes:
        lr: learning rate at its highest.
        warmup_epochs: epochs in which it rises from 0.
        epochs: epochs after the warm-up; a run has `warmup_epochs` more.
        schedule: how the rate goes on from there. `cosine`: it falls once, step by step. `constant`: it does not.
            `drops`: a tenth of it is left after each of the epochs in `drop_at`. `restarts`: it falls along a cosine of
            `period` epochs, epoch by epoch, and begins again.
        final_lr: what a cosine falls to.
        drop_at: epochs after the warm-up, for `drops`.
        period: epochs, for `restarts`.
        warmup_steps: steps, instead of epochs, in which the rate is lower and rises evenly.
        warmup_from: share of the rate that these begin with.
        method: how weights follow gradients: `adamw`; `adam`, whose decay is part of the gradient; or `sgd`.
        momentum: of `sgd`.
        weight_decay: how much weights shrink.
        decays: which do: those of `convolutions` and linear layers, but neither norms, biases nor scales; or `all`.
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
    schedule: Schedule = "cosine"
    final_lr: float = 1e-8
    drop_at: tuple[int, ...] = ()
    period: int = 0
    warmup_steps: int = 0
    warmup_from: float = 0.0
    method: Method = "adamw"
    momentum: float = 0.9
    weight_decay: float = 0.05
    decays: Decays = "convolutions"
    batch: int = 2
    accumulate: int = 1
    clip: float = 1.0
    average: float = 0.999
    average_ramp: bool = True

    def __post_init__(self) -> None:
        for name in ("lr", "batch", "accumulate"):
            if not getattr(self, name) > 0:
                raise BadValue(f"optimiser: {name} must be above 0, got {getattr(self, name)}")
        for name, known in (("schedule", Schedule), ("method", Method), ("decays", Decays)):
            if getattr(self, name) not in get_args(known):
                raise BadValue(f"optimiser: {name} is one of {', '.join(get_args(known))}, not {getattr(self, name)!r}")
        if bool(self.drop_at) != (self.schedule == "drops") or min(self.drop_at, default=1) < 1:
            raise BadValue(
                f"optimiser: drop_at names epochs from 1 on for schedule = 'drops', and goes with nothing else; got "
                f"{list(self.drop_at)} with {self.schedule!r}"
            )
        if (self.period > 0) != (self.schedule == "restarts"):
            raise BadValue(
                f"optimiser: period is the epochs of a cosine for schedule = 'restarts', and goes with nothing else; "
                f"got {self.period} with {self.schedule!r}"
            )
        if not 0 <= self.warmup_from <= 1 or not 0 <= self.momentum < 1:
            raise BadValue(
                f"optimiser: warmup_from lies from 0 to 1 and momentum below 1, got {self.warmup_from} and "
                f"{self.momentum}"
            )
        if self.warmup_steps and self.warmup_epochs:
            raise BadValue("optimiser: the rate is warmed up over epochs or over steps; set one of the two to 0")
        for name in ("warmup_epochs", "warmup_steps", "epochs", "final_lr", "weight_decay", "clip"):
            if not getattr(self, name) >= 0:
                raise BadValue(f"optimiser: {name} must not be below 0, got {getattr(self, name)}")
        if self.warmup_epochs + self.epochs < 1:
            raise BadValue("optimiser: there must be at least one epoch")
        if not 0 <= self.average < 1:
            raise BadValue(f"optimiser: average lies in 0..1, 1 left out, got {self.average}")

    @property
    def all_epochs(self) -> int:
        """Number of epochs including the warm-up."""
        return self.warmup_epochs + self.epochs


def learning_rate(config: OptimiserConfig, step: int, steps_an_epoch: int) -> float:
    """Return the learning rate of a step, counted from 0: linear warm-up, then the schedule.

    >>> config = OptimiserConfig(lr=1e-3, warmup_epochs=1, epochs=2)
    >>> [round(1e3 * learning_rate(config, step, 2), 5) for step in range(6)]
    [0.0, 1.0, 1.0, 0.85355, 0.50001, 0.14646]
    """
    warm, total = config.warmup_epochs * steps_an_epoch, config.all_epochs * steps_an_epoch
    if step < warm:
        return config.lr * step / max(warm - 1, 1)
    epoch = (step - warm) // steps_an_epoch
    rate = config.lr
    if config.schedule == "cosine":
        rate = _along_cosine(config, (step - warm) / max(total - warm, 1))
    elif config.schedule == "drops":
        rate = config.lr * DROP ** sum(epoch >= at for at in config.drop_at)
    elif config.schedule == "restarts":
        rate = _along_cosine(config, epoch % config.period / config.period)
    if step < config.warmup_steps:
        rate *= config.warmup_from + (1 - config.warmup_from) * step / config.warmup_steps
    return rate


def _along_cosine(config: OptimiserConfig, part: float) -> float:
    return config.final_lr + 0.5 * (config.lr - config.final_lr) * (1 + math.cos(math.pi * part))


def decay_at(decay: float, update: int, *, ramp: bool) -> float:
    """Return the decay of an update of the average, counted from 1.

    >>> [round(decay_at(0.99, update, ramp=True), 3) for update in (1, 10, 90, 2000)]
    [0.091, 0.5, 0.9, 0.99]
    """
    return min(decay, update / (update + 10)) if ramp else decay


def first_share(config: OptimiserConfig, steps: int) -> float:
    """Return the share of the initial weights in the average after this many steps.

    >>> round(first_share(OptimiserConfig(average=0.99, average_ramp=False), 78), 3)
    0.457
    """
    return math.prod(decay_at(config.average, update, ramp=config.average_ramp) for update in range(1, steps + 1))
