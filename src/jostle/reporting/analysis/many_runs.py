"""One benchmark on several models, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.formatting import percent
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.evaluation.results.run import Run
from jostle.reporting.analysis.stability import Stabilities


@dataclass(frozen=True)
class Many(Result):
    """Results of one benchmark on several models."""

    runs: dict[str, Run]  # by name of the run folder, in the order given
    failed: dict[str, str]  # those that could not be run, and why
    stabilities: Stabilities | None = None  # of frame classifiers
    figures: tuple[Path, ...] = ()  # accuracy against pm-k of those

    def tables(self) -> tuple[Table, ...]:
        """Return the means of every model; of frame classifiers accuracy and pm-k."""
        if self.stabilities is not None:
            return self.stabilities.tables()
        keys = ("clean", "mean_corrupted", "relative_robustness")
        columns = tuple(Column(name, "percent") for name in ("clean", "corrupted, mean", "of clean"))
        rows = tuple((name, *(run.scores[key] for key in keys)) for name, run in self.runs.items())
        return (Table("", (Column("model"), *columns), rows),)

    def notes(self) -> tuple[str, ...]:
        """Return the chance level, and what limited each run."""
        clean = next(iter(self.runs.values())).scores["clean_more"]
        chance = (f"chance level is {percent(clean['chance'])} %",) if clean.get("chance") else ()
        notes = chance if self.stabilities is None else self.stabilities.notes()
        return (*notes, *(f"{name}: {run.bottleneck}" for name, run in self.runs.items() if run.bottleneck))

    def written(self) -> tuple[Path, ...]:
        """Return the path of the first figure."""
        return self.figures[:1]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `run --json` of each model."""
        runs = {name: run.to_dict() for name, run in self.runs.items()}
        return {"format": 1, "runs": runs, "failed": self.failed, "figures": [str(path) for path in self.figures]}
