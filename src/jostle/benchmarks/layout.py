"""Where the corrupted copies of a benchmark lie: `<corruption>/<severity>/<path of the source>`, as -C sets have it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

from jostle.benchmarks.recipe import CLEAN, Cell, Recipe, safe
from jostle.corrupting.spec import Spec


def cell_folders(recipe: Recipe) -> dict[str, PurePosixPath]:
    """The folder of every cell, by its name, under the root of the written set.

    The first part is the corruption, without its profile unless two profiles of the recipe share the name; the second
    is the severity, a whole number that loaders can read. A placement that the recipe asks for stands with the
    corruption. The clean videos are at severity 0.

    >>> from jostle.benchmarks.recipe import benchmarks
    >>> folders = cell_folders(benchmarks["thumos14-c"])
    >>> str(folders["thumos14-c/packet_loss:3"]), str(folders["thumos14-c/black_frame:1@at:10%x5"])
    ('packet_loss/3', 'black_frame@at-10pct-x5/1')
    """
    homes: dict[str, set[str | None]] = defaultdict(set)
    for cell in recipe.cells:
        for spec in cell.parsed:
            homes[spec.name].add(spec.profile)
    return {
        cell.name: _folder(cell, {name for name, found in homes.items() if len(found) > 1}) for cell in recipe.cells
    }


def _folder(cell: Cell, shared: set[str]) -> PurePosixPath:
    if cell.name == CLEAN:
        return PurePosixPath(CLEAN, "0")
    place = cell.name.partition("@")[2]
    names = [_word(spec, shared) for spec in cell.parsed]
    severities = [str(spec.severity) for spec in cell.parsed]
    if len(set(severities)) == 1:
        severities = severities[:1]
    return PurePosixPath("+".join(names) + (f"@{safe(place)}" if place else ""), "+".join(severities))


def _word(spec: Spec, shared: set[str]) -> str:
    return f"{spec.profile}-{spec.name}" if spec.profile and spec.name in shared else spec.name
