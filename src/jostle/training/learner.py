"""What the loop needs of a task: a model, what it learns from in each step, and how well it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.detection.outputs import Losses as DetectorLosses
from jostle.training.distributed import Processes
from jostle.training.optimisation import Average
from jostle.training.schedule import OptimiserConfig

Losses = dict[str, Tensor]


class Learner(ABC):
    """A model and its data.

    Attributes:
        name: what the model is known by.
        model: what learns.
        steps_an_epoch: steps in which everything is seen once; what fills no step is left out.
        counts: how many there are to `learn` from and to `choose` by.
        chosen_by: what the score of an epoch is called.
        running: a number that moves along from step to step, and is kept with the checkpoint.
        rates: share of the learning rate that parameters have with this in their names; all others have all of it.
    """

    name: str
    model: nn.Module
    steps_an_epoch: int
    counts: dict[str, int]
    chosen_by: str
    running: float = 0.0
    rates: Mapping[str, float] = MappingProxyType({})

    @abstractmethod
    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """The losses of each batch of a step of an epoch; `total` is what is learned by."""

    @abstractmethod
    def score(self, average: Average) -> float | None:
        """How well the averaged weights do on what is held out; None if nothing is."""

    @abstractmethod
    def described(self) -> dict[str, str]:
        """What is noted beside the weights."""

    @abstractmethod
    def deciding(self) -> Iterator[bytes]:
        """Whatever of the data decides the result."""

    def ready(self) -> None:
        """Have the model learn in the step that comes."""
        self.model.train()

    def snapshot(self) -> Any:
        """What a step changes besides the weights."""
        return {name: value.clone() for name, value in self.model.named_buffers()}

    @torch.no_grad()
    def undo(self, snapshot: Any) -> None:
        """Put back what a bad step has changed."""
        for name, value in self.model.named_buffers():
            value.copy_(snapshot[name])


def mean_losses(own: Sequence[DetectorLosses]) -> Losses:
    """A detector's losses by name, each the mean over the inputs that it learns from."""
    names = ("total", "classification", "regression")
    made = {name: torch.stack([getattr(losses, name) for losses in own]).mean() for name in names}
    return made | {name: torch.stack([losses.others[name] for losses in own]).mean() for name in own[0].others}


def steps_in(count: int, what: str, config: OptimiserConfig, processes: Processes) -> int:
    """Steps of an epoch over so many things.

    Raises:
        BadValue: if there are too few, or a batch cannot be shared by the processes.
    """
    if config.batch % processes.count:
        share = f"{config.batch} {what} over {processes.count} processes"
        raise BadValue(f"a batch cannot be shared evenly: {share}; change optimiser.batch")
    steps = count // (config.batch * config.accumulate)
    if not steps:
        raise BadValue(
            f"{count} training {what} are fewer than one step needs, {config.batch} x {config.accumulate}; "
            "lower batch or accumulate"
        )
    return steps


def with_average(model: nn.Module, average: Average) -> _Lent:
    """Lend the model the averaged weights, for as long as a block runs."""
    return _Lent(model, average)


class _Lent:
    def __init__(self, model: nn.Module, average: Average) -> None:
        self._model, self._average = model, average
        self._learned: dict[str, Tensor] = {}

    def __enter__(self) -> None:
        self._learned = {name: value.clone() for name, value in self._model.state_dict().items()}
        self._model.load_state_dict(self._average.weights)

    def __exit__(self, *_: object) -> None:
        self._model.load_state_dict(self._learned)


def folder_for(folder: Path) -> Path:
    """The folder, which need not be there yet.

    Raises:
        BadValue: if it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise BadValue(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
