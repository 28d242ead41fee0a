"""Cells as corruption and severity in plain letters, for places that refuse the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jostle.evaluation.recipes.recipe import CLEAN, benchmarks
from jostle.evaluation.run_folder.metadata import format_model
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.record import RunRecord

_REFUSED = re.compile(r"[^A-Za-z0-9_.-]+")


def cell_labels(cells: Sequence[str], joint: str) -> dict[str, str]:
    """`<corruption><joint><severity>` of each cell: without its profile, unless two profiles share a name.

    >>> cell_labels(["clean", "kinetics-c/fog:3", "black_frame:1@at:50%x1"], "/")
    {'clean': 'clean', 'kinetics-c/fog:3': 'fog/3', 'black_frame:1@at:50%x1': 'black_frame-at-50-x1/1'}
    """
    bare = {cell: _label(re.sub(r"[^/+@]+/", "", cell), joint) for cell in cells}
    return bare if len(set(bare.values())) == len(bare) else {cell: _label(cell, joint) for cell in cells}


def _label(cell: str, joint: str) -> str:
    if cell == CLEAN:
        return CLEAN
    corruption, severity = split_cell(cell)
    name = _REFUSED.sub("-", corruption)
    return name if severity is None else f"{name}{joint}{severity}"


def benchmark_title(record: RunRecord) -> str:
    """The benchmark as papers print it, and the data it was put on if not its own; a user's own by its name."""
    name, recipe = record.about.benchmark, record.about.recipe
    return benchmarks[recipe].title + name.removeprefix(recipe) if recipe in benchmarks else name


def run_names(records: Sequence[RunRecord]) -> list[str]:
    """Return short distinct names of runs: the model, or the folder where two share a model."""
    models = [record.about.said for record in records]
    folders = [_folder(record) for record in records]
    for names in (models, folders):
        if len(set(names)) == len(names):
            return names
    return [f"{folder} ({i})" for i, folder in enumerate(folders, 1)]


def _folder(record: RunRecord) -> str:
    """The folder, and that its run was mended, unless its own name says so."""
    name = record.folder.resolve().name
    return name if "mended" in name else format_model(name, record.about.mend)
