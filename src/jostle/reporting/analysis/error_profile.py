"""Why a model fails, clean against corrupted.

Of detectors DETAD's kinds of error, what each costs, and who is hit; of recognisers the confusions that are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.core.types.video_labels import VideoLabels
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_of
from jostle.evaluation.results.record import Buckets, CellDiagnosis, RunRecord
from jostle.evaluation.results.run_analysis import Progress, processed_videos
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS


@dataclass(frozen=True)
class ProfileSide:
    """A diagnosis, or the mean of several."""

    # What part of the most confident predictions is of each kind, in each split of so many as there are actions
    splits: tuple[Mapping[str, float | None], ...]
    totals: Mapping[str, float | None]  # of the top-10G, how many predictions are of each kind
    impact: Mapping[str, float | None]  # what average mAP_N would gain if a kind of error vanished
    base: float | None  # average mAP_N
    sensitivity: Buckets  # average mAP_N by bucket; None for an empty one
    missed: float | None  # share of actions that no detection finds
    missed_by: Buckets  # the same by bucket

    @property
    def shares(self) -> Mapping[str, float | None]:
        """What part of the first split, the top-1G, is of each kind."""
        return self.splits[0]


@dataclass(frozen=True)
class ErrorProfile:
    """DETAD error profile, clean against corrupted."""

    style: str  # the thresholds and buckets
    tious: tuple[float, ...]  # thresholds
    clean: ProfileSide
    corrupted: ProfileSide | None
    cells: tuple[str, ...]  # those that `corrupted` is the mean of
    without: tuple[str, ...]  # cells that have no diagnosis, as nothing was found there


def error_profile(record: RunRecord, cells: Sequence[str] | None = None) -> ErrorProfile | None:
    """Return the profile, clean and averaged over cells (by default those that count); None without a diagnosis."""
    diagnoses = record.diagnosis
    if diagnoses is None:
        return None
    names = record.counted if cells is None else cells
    known = {cell: diagnosis for cell in names if (diagnosis := diagnoses.cells.get(cell)) is not None}
    return ErrorProfile(
        diagnoses.style,
        diagnoses.tious,
        side_of(diagnoses),
        side_of(*known.values()) if known else None,
        tuple(known),
        tuple(cell for cell in names if cell not in known),
    )


def side_of(*diagnoses: CellDiagnosis) -> ProfileSide:
    """Return the numbers of a diagnosis, or the means of several."""
    wrong = [one.false_positives for one in diagnoses]
    by_split = list(zip(*(one.profile for one in wrong), strict=True))
    return ProfileSide(
        splits=tuple({kind: _mean(one[kind] for one in split) for kind in ERROR_KINDS} for split in by_split),
        totals={kind: _mean(one.totals[kind] for one in wrong) for kind in ERROR_KINDS},
        impact={kind: _mean(one.impact[kind] for one in wrong) for kind in ERRORS},
        base=_mean(one.base for one in diagnoses),
        sensitivity=_buckets([one.by_bucket for one in diagnoses]),
        missed=_mean(one.missed for one in diagnoses),
        missed_by=_buckets([one.missed_by_bucket for one in diagnoses]),
    )


def _buckets(diagnoses: Sequence[Buckets]) -> Buckets:
    """The mean of each bucket of the first over all that know it."""
    return {
        name: {bucket: _mean(one.get(name, {}).get(bucket) for one in diagnoses) for bucket in buckets}
        for name, buckets in diagnoses[0].items()
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class Confused:
    """One class taken for another."""

    # The classes
    true: str
    taken_for: str
    # The share of the videos of `true` to which this happens
    clean: float
    corrupted: float
    videos: int  # how many videos `true` has
    worst_cell: str  # the cell in which it happens most

    @property
    def growth(self) -> float:
        """Increase of the confusion rate from clean to corrupted."""
        return self.corrupted - self.clean


@dataclass(frozen=True, eq=False)
class Confusion:
    """Shares of the videos of each class (rows) by what they are taken for (columns)."""

    classes: tuple[str, ...]
    clean: Floats  # (C, C); a row without a video is 0
    corrupted: Floats  # (C, C) mean over the cells
    # Pairs of different classes, the greatest growth first; those that did not grow are left away
    grew: tuple[Confused, ...]


def confusion_of(
    record: RunRecord, cells: Sequence[str] | None = None, progress: Progress | None = None
) -> Confusion | None:
    """The confusions of a run on labelled videos; None for others, and where there are no cells.

    A video counts by its most confident class. With several true classes it is right with any, and else counts for
    each.

    Args:
        cells: by default those that count.
    """
    selected = [cell for cell in (record.counted if cells is None else cells) if cell in record.cells]
    if not isinstance(record.annotations, VideoLabels) or not selected:
        return None
    labels = record.annotations.of_videos(processed_videos(record))
    count = np.bincount(labels.label, minlength=len(labels.classes))
    tables = []
    for cell in (CLEAN, *selected):
        guess = predictions_of(record, cell, labels.videos).scores.argmax(axis=1)
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
