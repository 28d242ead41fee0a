"""A training task of one's own: jostle train line.toml --import line -o run, where line.toml says task = "line"."""

from dataclasses import dataclass

import torch

from jostle.extend import Learner, RunConfig, training_task


@dataclass(frozen=True, kw_only=True)
class LineConfig(RunConfig):
    """Settings: those of every run, and what the task needs."""

    task: str = "line"
    slope: float = 3.0


@training_task("line", LineConfig)
class Line(Learner):
    """A line, learned from points that are drawn in every step."""

    name, steps_an_epoch, counts = "line", 4, {"learn": 8, "choose": 0}

    def __init__(self, config, processes):
        self.config, self.processes = config, processes
        self.model = torch.nn.Linear(1, 1).to(processes.device)

    def losses(self, epoch, step):
        """Yield the losses of each batch of a step; `total` is minimised. Draws of torch are keyed by the step."""
        x = torch.rand(2, 1, device=self.processes.device)
        yield {"total": (self.model(x) - self.config.slope * x).square().mean()}
