"""What the predictions of a run are worth: the content of scores.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe
from jostle.evaluation.run_folder.metadata import FORMAT
from jostle.evaluation.tasks.task import Measured
from jostle.metrics.robustness import robustness


def summed_up(
    recipe: Recipe,
    model: str,
    cells: Sequence[Cell],
    measured: Mapping[str, Measured],
    coverage: Mapping[str, int],
    mend: str | None = None,
) -> dict[str, Any]:
    """The values of cells, and what is left of the clean one.

    Args:
        cells: those that have predictions.
        measured: what each is worth, by name.
        coverage: how many videos and classes that is on, and of how many.
        mend: what said which frames were struck, where what they touch was replaced.
    """
    videos = {key: coverage[key] for key in ("videos", "of")}
    counted = {cell.name: measured[cell.name].value for cell in cells if cell.counted}
    told: dict[str, Any] = {"format": FORMAT, "benchmark": recipe.name, "model": model, "metric": recipe.measure}
    if mend is not None:
        told["mend"] = mend
    told |= _robustness(recipe, measured[CLEAN].value, counted)
    told["clean_more"] = measured[CLEAN].more
    told["cells"] = [cell | measured[cell["cell"]].more | videos for cell in told["cells"]]
    told["beside"] = [
        {"cell": cell.name, "value": measured[cell.name].value, **measured[cell.name].more, **videos}
        for cell in cells
        if not cell.counted and cell.name != CLEAN
    ]
    told["counted"] = {"cells": len(counted), "of": sum(cell.counted for cell in recipe.cells)}
    told["coverage"] = dict(coverage)
    return told


def _robustness(recipe: Recipe, clean: float, counted: Mapping[str, float]) -> dict[str, Any]:
    if counted:
        return robustness(clean, counted, families=recipe.families, percent=False).to_dict()
    # Nothing but clean video: the same keys, and nothing to take a mean of.
    none = robustness(clean, {"none:1": None}, percent=False)
    return replace(none, cells=(), by_corruption={}, by_severity={}, missing=()).to_dict()
