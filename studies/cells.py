"""The cells that the study looks at: those of the benchmark, and the two studies of single frames beside it."""

from __future__ import annotations

from jostle.evaluation.recipes.recipe import Cell, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, POSITIONS

__all__ = ["CELLS", "CORRUPTIONS", "POSITIONS", "PUPPETS_C", "SHARES"]

RECIPE = benchmarks["puppets-c"]
SHARES = {1: "1 %", 2: "5 %", 3: "10 %"}
PUPPETS_C = tuple(cell.name for cell in select_cells(RECIPE)[1:])


def _said(cell: Cell) -> str:
    """A cell as the records of the study call it."""
    place = cell.name.partition("@")[2]
    if cell.group == "position":
        return f"five at {place.removeprefix('at:').removesuffix('%x5')} %"
    return {"one-frame": "one frame", "background": "five in the background"}.get(cell.group, cell.name)


CHOSEN = select_cells(RECIPE, [*PUPPETS_C, "group:one-frame", "group:position", "group:background"])[1:]

# name: (spec, placement); None for the spec's own.
CELLS: dict[str, tuple[str, str | None]] = {_said(cell): (cell.specs[0], cell.placement) for cell in CHOSEN}
