"""Summary of a run's metric values: the content of scores.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe
from jostle.evaluation.run_folder.metadata import FORMAT
from jostle.evaluation.tasks.task import MetricValue
from jostle.metrics.robustness import robustness


def summarize_scores(
    recipe: Recipe,
    model: str,
    cells: Sequence[Cell],
    measured: Mapping[str, MetricValue],
    coverage: Mapping[str, int],
    mend: str | None = None,
) -> dict[str, Any]:
    """Summarize the values of cells and the robustness of the model.

    Args:
        cells: cells with predictions.
        measured: metric value by cell name.
        coverage: number of videos and classes used, and in all.
        mend: name of the inspector, if corrupted frames were mended.
    """
    videos = {key: coverage[key] for key in ("videos", "of")}
    counted = {cell.name: measured[cell.name].value for cell in cells if cell.counted}
    summary: dict[str, Any] = {"format": FORMAT, "benchmark": recipe.name, "model": model, "metric": recipe.measure}
    if mend is not None:
        summary["mend"] = mend
    summary |= _robustness(recipe, measured[CLEAN].value, counted)
    summary["clean_more"] = measured[CLEAN].more
    summary["cells"] = [cell | measured[cell["cell"]].more | videos for cell in summary["cells"]]
    summary["beside"] = [
        {"cell": cell.name, "value": measured[cell.name].value, **measured[cell.name].more, **videos}
        for cell in cells
        if not cell.counted and cell.name != CLEAN
    ]
    summary["counted"] = {"cells": len(counted), "of": sum(cell.counted for cell in recipe.cells)}
    summary["coverage"] = dict(coverage)
    return summary


def _robustness(recipe: Recipe, clean: float, counted: Mapping[str, float]) -> dict[str, Any]:
    if counted:
        return robustness(clean, counted, families=recipe.families, percent=False).to_dict()
    # Only clean videos: the same keys, without values.
    none = robustness(clean, {"none:1": None}, percent=False)
    return replace(none, cells=(), by_corruption={}, by_severity={}, missing=()).to_dict()
