"""Interface between the training loop and a task: a model, its losses and its score."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from jostle.core.random import rng_for
from jostle.errors import BadValue
from jostle.models.detection.detector import Detector
from jostle.models.detection.outputs import Losses as DetectorLosses
from jostle.training.distributed import Processes
from jostle.training.events import Watch
from jostle.training.optimisation import Average
from jostle.training.schedule import OptimiserConfig

Losses = dict[str, Tensor]


class Learner(ABC):
    """A model and its training data.

    A learner has a `name`, a `model`, `steps_an_epoch` and `losses`; for all else there is a default.

    Attributes:
        config: settings of the run.
        processes: the process group.
        name: name of the model.
        model: the network that is trained, on the device of the processes.
        steps_an_epoch: steps of one pass over the data; an incomplete last step is dropped.
        counts: number of items to `learn` from and to `choose` by.
        chosen_by: name of the score of an epoch.
        running: running statistic that is saved with the checkpoint.
        rates: share of the learning rate for parameters with this in their names; 1 for all others.
    """

    config: Any
    processes: Processes
    name: str
    model: nn.Module
    steps_an_epoch: int
    counts: Mapping[str, int] = MappingProxyType({"learn": 0, "choose": 0})
    chosen_by: str = "score"
    running: float = 0.0
    rates: Mapping[str, float] = MappingProxyType({})

    def prepare(self, watch: Watch | None) -> None:  # noqa: B027 - few have anything to do here
        """Load data that take long, and tell `watch` how far that is; called once, before anything else."""

    @abstractmethod
    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """Yield the losses of each batch of a step; `total` is minimised.

        Torch's generator is seeded for every step, so that a run that goes on draws what it would have drawn.
        """

    def score(self, average: Average) -> float | None:
        """Return the score of the averaged weights on held-out data; None if nothing is held out."""
        return None

    def metadata(self) -> dict[str, str]:
        """Return the metadata to store with the weights."""
        return {"task": self.config.task, "seed": str(self.config.seed)}

    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield the parts of the data that determine the result, as bytes to hash."""
        yield from ()

    def batch_rows(self, count: int, epoch: int, step: int) -> Iterator[list[int]]:
        """Yield the rows of this process's share of each batch of a step, out of `count`; a last part is dropped."""
        config, processes = self.config.optimiser, self.processes
        order = rng_for(self.config.seed, "order", epoch).permutation(count)
        for number in range(step * config.accumulate, (step + 1) * config.accumulate):
            first = number * config.batch
            yield order[first : first + config.batch][processes.rank :: processes.count].tolist()

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


def detector_metadata(config: Any, model: Detector[Any]) -> dict[str, str]:
    """Return the metadata of a trained detector: its name, its settings and its classes."""
    return {
        "detector": config.detector,
        "settings": json.dumps(dict(config.settings)),
        "classes": json.dumps(model.config.class_names),
        "seed": str(config.seed),
    }


def steps_in(count: int, what: str, config: OptimiserConfig, processes: Processes) -> int:
    """Return the number of steps of an epoch over `count` items."""
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


@contextmanager
def with_average(model: nn.Module, average: Average) -> Iterator[None]:
    """Load the averaged weights into the model, and the learned ones again at the end."""
    learned = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(average.weights)
    try:
        yield
    finally:
        model.load_state_dict(learned)


def folder_for(folder: Path) -> Path:
    """Create the folder of a run if it is missing."""
    if folder.exists() and not folder.is_dir():
        raise BadValue(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
