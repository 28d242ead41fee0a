"""Choice of the rule by which a run ends as soon as a budget is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue, DataError, Incomparable
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.metadata import Content
from jostle.evaluation.runner.session import StoppingRule
from jostle.evaluation.runner.state import usable_videos
from jostle.evaluation.tasks.task import make_task
from jostle.gate.budget import Budget
from jostle.gate.early_stopping import SequentialStop
from jostle.gate.gaps import Scope, find_gaps
from jostle.gate.group_sequential import GroupSequentialStop, check_intervals


def make_stopping_rule(
    recipe: Recipe,
    data: Dataset,
    cells: Sequence[Cell],
    budget: Budget,
    against: str | Path | None = None,
    seed: int = 0,
    *,
    fail_fast: bool = False,
) -> StoppingRule:
    """Return the rule that ends a run when every condition of a budget is decided.

    Args:
        cells: that the run is requested to have.
        against: folder of the reference run.
        fail_fast: whether one failed condition is enough.

    Raises:
        BadValue: if a condition cannot be decided, as by cells that the run leaves out.
        DataError: if the reference run lacks something.
        Incomparable: if it is of another benchmark, data or seed.
    """
    task = make_task(recipe, data)
    scope, requested = Scope.of(Content.of(recipe.content())), {CLEAN, *(cell.name for cell in cells)}
    for condition in budget.condition:
        if lacking := [cell for cell in scope.of_condition(condition) if cell not in requested]:
            raise BadValue(
                f"{condition.title!r} cannot be decided, as {len(lacking)} of the cells that it is about are left out, "
                f"{lacking[0]} among them; run all of them, or give conditions on single cells",
                fault="F150",
            )
    reference = None if against is None else RunRecord.read(against)
    if reference is not None:
        _check_reference(reference, recipe.name, (recipe.fingerprint, task.fingerprint, seed), scope, budget)
    names = list(usable_videos(task))
    options: dict[str, Any] = {
        "seed": seed,
        "fail_fast": fail_fast,
        "blocked": bool(data.missing) or len(names) < len(task.videos),
    }
    chosen = replace(scope, cells=tuple(one for one in scope.cells if one in requested))
    if task.metric.mean_over == "videos":
        return SequentialStop(chosen, names, task.annotations, budget, reference, **options)
    check_intervals(recipe.name, task.metric)
    return GroupSequentialStop(chosen, names, budget, reference, **options)


def _check_reference(
    reference: RunRecord, benchmark: str, origin: tuple[str, str, int], scope: Scope, budget: Budget
) -> None:
    """Raise unless the reference run is a whole run of the same benchmark, on the same data with the same seed."""
    about = reference.about
    if origin != (about.fingerprint, about.truth, about.seed):
        raise Incomparable(
            f"{reference.folder}: not a run of {benchmark} on the same data with the same seed; run the reference like "
            "this",
            fault="F150",
        )
    named = {cell for one in budget.condition if one.against_reference for cell in scope.of_condition(one)}
    gaps = [gap.reason for gap in find_gaps(reference, scope, named) if gap.concerns(named)]
    if about.stopped_early is not None:
        gaps.append(f"{reference.folder} stopped early")
    if gaps:
        raise DataError(f"the reference run is not whole: {gaps[0]}", fault="F150")
