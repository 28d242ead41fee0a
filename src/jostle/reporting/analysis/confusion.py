"""Confusion matrices of recognisers, and the confusions that corruption adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.cell_scores import table_rows
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import Progress, processed_videos


@dataclass(frozen=True)
class Confused:
    """One class taken for another.

    Attributes:
        true, taken_for: the classes.
        clean, corrupted: the share of the videos of `true` to which this happens.
        videos: how many videos `true` has.
        worst_cell: the cell in which it happens most.
    """

    true: str
    taken_for: str
    clean: float
    corrupted: float
    videos: int
    worst_cell: str

    @property
    def growth(self) -> float:
        """Increase of the confusion rate from clean to corrupted."""
        return self.corrupted - self.clean


@dataclass(frozen=True, eq=False)
class Confusion:
    """Shares of the videos of each class (rows) by what they are taken for (columns).

    Attributes:
        clean: (C, C); a row without a video is 0.
        corrupted: (C, C) mean over the cells.
        grew: pairs of different classes, the greatest growth first; those that did not grow are left away.
    """

    classes: tuple[str, ...]
    clean: Floats
    corrupted: Floats
    grew: tuple[Confused, ...]


def confusion_of(
    record: RunRecord, cells: Sequence[str] | None = None, progress: Progress | None = None
) -> Confusion | None:
    """The confusions of a run of recognition; None where there are no cells.

    A video counts by its surest class. One with several true classes is right with any, and else counts for each.

    Args:
        cells: by default those that count.
    """
    selected = [cell for cell in (record.counted if cells is None else cells) if cell in record.cells]
    if not selected:
        return None
    labels = record.labels.of_videos(processed_videos(record))
    count = np.bincount(labels.label, minlength=len(labels.classes))
    tables = []
    for cell in (CLEAN, *selected):
        guess = table_rows(record, cell, labels.videos).argmax(axis=1)
        own = np.zeros((len(labels.videos), len(labels.classes)), np.bool_)
        own[labels.video, labels.label] = True
        right = own[np.arange(len(guess)), guess]
        predicted = np.where(right[labels.video], labels.label, guess[labels.video])
        table = np.zeros((len(labels.classes), len(labels.classes)))
        np.add.at(table, (labels.label, predicted), 1)
        tables.append(table / np.maximum(count, 1)[:, None])
        if progress is not None:
            progress(len(tables), len(selected) + 1)
    clean, rates = tables[0], np.stack(tables[1:])
    growth = rates.mean(axis=0) - clean
    np.fill_diagonal(growth, 0)
    pairs = [(i, j) for i, j in zip(*np.nonzero(growth > 0), strict=True)]
    pairs.sort(key=lambda pair: (-growth[pair], pair))
    grew = tuple(
        Confused(
            labels.classes[i],
            labels.classes[j],
            float(clean[i, j]),
            float(rates[:, i, j].mean()),
            int(count[i]),
            selected[int(rates[:, i, j].argmax())],
        )
        for i, j in pairs
    )
    return Confusion(labels.classes, clean, rates.mean(axis=0), grew)
