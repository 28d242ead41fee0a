"""Events of a training run: its plan, and its progress after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jostle.training.schedule import OptimiserConfig, first_share

TOO_MUCH = 0.05  # largest share of the initial weights in the final average


@dataclass(frozen=True)
class TrainingPlan:
    """Plan of a training run.

    Attributes:
        model: name of the model.
        optimiser: optimiser settings.
        steps_an_epoch: steps of one pass over the data.
        learn: number of videos or clips to learn from.
        choose: number to choose an epoch by; 0 keeps the last.
        done: steps done before the run was resumed.
    """

    model: str
    optimiser: OptimiserConfig
    steps_an_epoch: int
    learn: int
    choose: int
    done: int = 0

    @property
    def steps(self) -> int:
        """Total number of steps of the run."""
        return self.optimiser.all_epochs * self.steps_an_epoch

    @property
    def sentence(self) -> str:
        """The plan as a sentence for the console."""
        warm, rest = self.optimiser.warmup_epochs, self.optimiser.epochs
        made_of = f" ({warm} of warm-up, then {rest})" if warm else ""
        chosen = f"{self.choose} to choose the epoch by" if self.choose else "the last epoch is kept"
        gone = f"; {self.done} steps are done" if self.done else ""
        return (
            f"{self.model}: {self.optimiser.all_epochs} epochs{made_of} of {self.steps_an_epoch} steps, "
            f"{self.steps} in all; {self.learn} to learn from, {chosen}{gone}"
        )

    @property
    def warning(self) -> str:
        """Warning about a run that is too short for its average, or an empty string."""
        left = first_share(self.optimiser, self.steps)
        if left <= TOO_MUCH:
            return ""
        return (
            f"after {self.steps} steps the running average, which is what is kept, still is {100 * left:.0f} % the "
            "initial weights; set optimiser.average_ramp = true, lower optimiser.average, or train longer"
        )


@dataclass(frozen=True)
class TrainingProgress:
    """Progress of a run after a step.

    Attributes:
        step: steps done, of `steps`.
        epoch: the one it is in, from 1.
        loss: mean of the epoch so far; None where no step of it counted.
        chosen_by: what the score of an epoch is called.
        score: of the last epoch that was scored.
        best: and the best of all.
    """

    step: int
    steps: int
    epoch: int
    loss: float | None
    chosen_by: str
    score: float | None
    best: float | None

    @property
    def sentence(self) -> str:
        """The progress as a short text for the console."""
        loss = "" if self.loss is None else f", loss {self.loss:.3f}"
        best = "" if self.best is None or self.best == self.score else f" (best {100 * self.best:.1f})"
        score = "" if self.score is None else f", {self.chosen_by} {100 * self.score:.1f} %{best}"
        return f"epoch {self.epoch}{loss}{score}"


@dataclass(frozen=True)
class DataPreparation:
    """Progress of the preparation of training data, before the first step.

    Attributes:
        what: kind of data.
        step: number of items done, of `steps`.
    """

    what: str
    step: int
    steps: int

    @property
    def sentence(self) -> str:
        """The progress as a short text for the console."""
        return f"preparing {self.what}"


Watch = Callable[[TrainingPlan | TrainingProgress | DataPreparation], None]
