"""Score drops from clean to corrupted, by class and by video."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.run_analysis import RunAnalysis


@dataclass(frozen=True)
class Drop:
    """Score drop of one class or one video.

    Attributes:
        name: of the class or the video.
        clean: its value on clean video.
        corrupted: the mean over the given cells.
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


def class_drops(analysis: RunAnalysis, cells: Sequence[str] | None = None) -> list[Drop]:
    """Every class with an instance, the greatest loss first.

    Args:
        cells: those that the corrupted value is the mean of; by default those that count.
    """
    return _drops(analysis, analysis.classes, analysis.by_class, cells)


def video_drops(analysis: RunAnalysis, cells: Sequence[str] | None = None) -> list[Drop]:
    """Every video with an annotation, the greatest loss first; values are of each video by itself."""
    return _drops(analysis, analysis.videos, analysis.by_video, cells)


def _drops(analysis: RunAnalysis, names: Sequence[str], table: Floats, cells: Sequence[str] | None) -> list[Drop]:
    at = analysis.columns(cells)
    if not at:
        return []
    clean, scores = table[analysis.place[CLEAN]], table[at]
    drops = []
    for i, name in enumerate(names):
        if not (np.isfinite(clean[i]) and np.isfinite(scores[:, i]).all()):
            continue
        worst = int(np.argmin(scores[:, i]))
        cell = analysis.cells[at[worst]]
        drops.append(Drop(name, float(clean[i]), float(scores[:, i].mean()), cell, float(scores[worst, i])))
    return sorted(drops, key=lambda drop: (-drop.loss, drop.name))
