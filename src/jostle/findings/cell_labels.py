"""Cells as corruption and severity in plain letters, for places that refuse the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jostle.benchmarks.recipe import CLEAN
from jostle.metrics.robustness import split_cell

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
