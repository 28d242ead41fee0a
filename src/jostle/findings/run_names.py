"""What runs and their benchmarks are called."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.benchmarks.recipe import benchmarks
from jostle.findings.record import RunRecord
from jostle.runs.about import model_said


def benchmark_title(record: RunRecord) -> str:
    """The benchmark as papers print it, and the data it was put on if not its own; a user's own by its name."""
    name, recipe = record.about.benchmark, record.about.recipe
    return benchmarks[recipe].title + name.removeprefix(recipe) if recipe in benchmarks else name


def run_names(records: Sequence[RunRecord]) -> list[str]:
    """Short names that tell runs apart: the model, or the folder where two have one model."""
    models = [record.about.said for record in records]
    folders = [_folder(record) for record in records]
    for names in (models, folders):
        if len(set(names)) == len(names):
            return names
    return [f"{folder} ({i})" for i, folder in enumerate(folders, 1)]


def _folder(record: RunRecord) -> str:
    """The folder, and that its run was mended, unless its own name says so."""
    name = record.folder.resolve().name
    return name if "mended" in name else model_said(name, record.about.mend)
