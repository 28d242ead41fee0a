"""Who is hurt: classes and videos, by what corruption takes from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.run_analysis import Survey


@dataclass(frozen=True)
class Drop:
    """What one class or one video loses.

    Attributes:
        name: of the class or the video.
        clean: its value on clean video.
        corrupted: the mean over the cells asked about.
        worst_cell: the cell in which it is worth least.
        worst: its value there.
    """

    name: str
    clean: float
    corrupted: float
    worst_cell: str
    worst: float

    @property
    def loss(self) -> float:
        """Clean less corrupted; negative where corruption helps."""
        return self.clean - self.corrupted


def class_drops(found: Survey, cells: Sequence[str] | None = None) -> list[Drop]:
    """Every class with an instance, the greatest loss first.

    Args:
        cells: those that the corrupted value is the mean of; by default those that count.
    """
    return _drops(found, found.classes, found.by_class, cells)


def video_drops(found: Survey, cells: Sequence[str] | None = None) -> list[Drop]:
    """Every video with an annotation, the greatest loss first; values are of each video by itself."""
    return _drops(found, found.videos, found.by_video, cells)


def _drops(found: Survey, names: Sequence[str], table: Floats, cells: Sequence[str] | None) -> list[Drop]:
    at = found.columns(cells)
    if not at:
        return []
    clean, struck = table[found.place[CLEAN]], table[at]
    made = []
    for i, name in enumerate(names):
        if not (np.isfinite(clean[i]) and np.isfinite(struck[:, i]).all()):
            continue
        worst = int(np.argmin(struck[:, i]))
        cell = found.cells[at[worst]]
        made.append(Drop(name, float(clean[i]), float(struck[:, i].mean()), cell, float(struck[worst, i])))
    return sorted(made, key=lambda drop: (-drop.loss, drop.name))
