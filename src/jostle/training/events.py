"""What a run tells of itself while it goes on: what it is going to do, and then where it stands after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jostle.training.schedule import OptimiserConfig, first_share

TOO_MUCH = 0.05  # of the first weights in the average at the end


@dataclass(frozen=True)
class Intent:
    """What a run is going to do.

    Attributes:
        model: what is trained.
        optimiser: how long and how fast.
        steps_an_epoch: steps in which everything is seen once.
        learn: videos or clips to learn from.
        choose: to choose an epoch by; 0 keeps the last.
        done: steps that are behind it, where it was stopped before.
    """

    model: str
    optimiser: OptimiserConfig
    steps_an_epoch: int
    learn: int
    choose: int
    done: int = 0

    @property
    def steps(self) -> int:
        """In all."""
        return self.optimiser.all_epochs * self.steps_an_epoch

    @property
    def sentence(self) -> str:
        """The same for reading."""
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
        """What is wrong with the length of the run, or nothing."""
        left = first_share(self.optimiser, self.steps)
        if left <= TOO_MUCH:
            return ""
        return (
            f"after {self.steps} steps the running average, which is what is kept, still is {100 * left:.0f} % the "
            "first weights; set optimiser.average_ramp = true, lower optimiser.average, or train longer"
        )


@dataclass(frozen=True)
class Moment:
    """Where a run stands after a step.

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
        """In a few words."""
        loss = "" if self.loss is None else f", loss {self.loss:.3f}"
        best = "" if self.best is None or self.best == self.score else f" (best {100 * self.best:.1f})"
        score = "" if self.score is None else f", {self.chosen_by} {100 * self.score:.1f} %{best}"
        return f"epoch {self.epoch}{loss}{score}"


@dataclass(frozen=True)
class Making:
    """How far the making of what is learned from has come, before the first step.

    Attributes:
        what: is made.
        step: how many are, of `steps`.
    """

    what: str
    step: int
    steps: int

    @property
    def sentence(self) -> str:
        """In a few words."""
        return f"making {self.what}"


Watch = Callable[[Intent | Moment | Making], None]
