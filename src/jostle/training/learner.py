"""Interface between the training loop and a task: a model, its losses and its score."""

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
    """A model and its training data.

    Attributes:
        name: name of the model.
        model: the network that is trained.
        steps_an_epoch: steps of one pass over the data; an incomplete last step is dropped.
        counts: number of items to `learn` from and to `choose` by.
        chosen_by: name of the score of an epoch.
        running: running statistic that is saved with the checkpoint.
        rates: share of the learning rate for parameters with this in their names; 1 for all others.
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
        """Yield the losses of each batch of a step; `total` is minimised."""

    @abstractmethod
    def score(self, average: Average) -> float | None:
        """Return the score of the averaged weights on held-out data; None if nothing is held out."""

    @abstractmethod
    def metadata(self) -> dict[str, str]:
        """Return the metadata to store with the weights."""

    @abstractmethod
    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield the parts of the data that determine the result, as bytes to hash."""

    def ready(self) -> None:
        """Put the model into training mode for the next step."""
        self.model.train()

    def snapshot(self) -> Any:
        """Return a copy of the buffers, which a step changes besides the weights."""
        return {name: value.clone() for name, value in self.model.named_buffers()}

    @torch.no_grad()
    def undo(self, snapshot: Any) -> None:
        """Restore the buffers after a bad step."""
        for name, value in self.model.named_buffers():
            value.copy_(snapshot[name])


def mean_losses(own: Sequence[DetectorLosses]) -> Losses:
    """Return a detector's losses by name, each averaged over the inputs."""
    names = ("total", "classification", "regression")
    means = {name: torch.stack([getattr(losses, name) for losses in own]).mean() for name in names}
    return means | {name: torch.stack([losses.others[name] for losses in own]).mean() for name in own[0].others}


def steps_in(count: int, what: str, config: OptimiserConfig, processes: Processes) -> int:
    """Return the number of steps of an epoch over `count` items.

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
    """Return a context manager that loads the averaged weights into the model."""
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
    """Create the folder of a run if it is missing.

    Raises:
        BadValue: if it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise BadValue(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
