"""Evaluation protocols: the rules of public evaluators for scoring detections, as data.

The four common evaluators differ in thresholds, matching, ties, duplicate and empty instances, and ambiguous spans.
Each is named here, so that every number can state its protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jostle.core.registry import Registry
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.truth import Spans, Truth
from jostle.errors import BadValue


@dataclass(frozen=True)
class Protocol:
    """Rules of an evaluator for scoring detections.

    Attributes:
        name: value of `--protocol`.
        tious: default thresholds of temporal overlap.
        chooser: direction of matching. `prediction`: by descending score, each prediction is matched to the free
            instance it overlaps most, if the overlap is at least the threshold. `instance`: in file order, each
            instance is matched to the free prediction that overlaps it most, if the overlap exceeds the threshold.
        ap: `interpolated` (precision raised to the best at any higher recall) or `raw` (mean precision at hits).
        ties: order of predictions with equal scores: the `later` row of the file first, or by `video` id and then the
            earlier row.
        duplicate_tolerance: instances of one class in one video whose two ends lie within this many seconds are
            one; None keeps both.
        shortest: instances shorter than this many seconds are left out; None keeps them all.
        ambiguous: whether unmatched predictions that touch an ambiguous span are ignored.
        cites: key of the reference.
    """

    name: str
    tious: tuple[float, ...]
    chooser: Literal["prediction", "instance"] = "prediction"
    ap: Literal["interpolated", "raw"] = "interpolated"
    ties: Literal["later", "video"] = "later"
    duplicate_tolerance: float | None = None
    shortest: float | None = None
    ambiguous: bool = False
    cites: str = ""
    summary: str = ""

    def prepare(self, truth: Truth) -> Truth:
        """Return the instances that this protocol counts; others are counted in `left_out`."""
        if self.shortest is not None:
            truth = truth.keep(truth.end - truth.start >= self.shortest, "shorter than the protocol allows")
        if self.duplicate_tolerance is not None:
            truth = truth.keep(~_find_duplicates(truth, self.duplicate_tolerance), "duplicate of an earlier instance")
        return truth

    def stretches(self, truth: Truth) -> Spans:
        """Return the ambiguous spans if this protocol uses them."""
        return truth.ambiguous if self.ambiguous else Spans.none()


def thresholds(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return thresholds from `linspace`, as in the public programs; 0.6 differs from the literal in the last bit."""
    return tuple(np.linspace(first, last, count).tolist())


def check_tious(values: npt.ArrayLike) -> Floats:
    """Convert thresholds to an array (T,) and check their range."""
    tious = np.atleast_1d(np.array(values, np.float64))
    if tious.ndim != 1 or not len(tious) or not ((tious > 0) & (tious <= 1)).all():
        raise BadValue(f"thresholds of tIoU lie above 0 and at most at 1, got {tious.tolist()}")
    return tious


def _find_duplicates(truth: Truth, tolerance: float) -> Flags:
    """Return (G,) flags of instances that repeat an earlier kept one within `tolerance` seconds."""
    duplicates = np.zeros(len(truth), bool)
    order = np.lexsort((np.arange(len(truth)), truth.label, truth.video))
    keys = np.stack([truth.video[order], truth.label[order]])
    edges = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    for rows in np.split(order, edges):
        if len(rows) > 1:
            duplicates[rows] = _find_duplicates_in_group(truth.start[rows], truth.end[rows], tolerance)
    return duplicates


def _find_duplicates_in_group(start: Floats, end: Floats, tolerance: float) -> Flags:
    duplicates = np.zeros(len(start), bool)
    for i in range(1, len(start)):
        remaining = ~duplicates[:i]
        near = (abs(start[:i] - start[i]) <= tolerance) & (abs(end[:i] - end[i]) <= tolerance)
        duplicates[i] = bool((near & remaining).any())
    return duplicates


protocols: Registry[Protocol] = Registry("protocol")

for _protocol in (
    Protocol(
        "activitynet",
        thresholds(0.5, 0.95, 10),
        cites="caba2015",
        summary="The ActivityNet toolkit: every instance counts, also an empty or repeated one.",
    ),
    Protocol(
        "thumos14",
        thresholds(0.3, 0.7, 5),
        duplicate_tolerance=1e-3,
        shortest=1e-3,
        cites="zhang2022",
        summary="ActionFormer's evaluator, also used by TriDet and TemporalMaxer: repeated and empty instances go.",
    ),
    Protocol(
        "opentad",
        thresholds(0.3, 0.7, 5),
        duplicate_tolerance=1e-3,
        shortest=float(np.nextafter(0.0, 1.0)),
        cites="liu2025",
        summary="OpenTAD's evaluator: repeated instances and those of no length go.",
    ),
    Protocol(
        "thumos14-official",
        thresholds(0.1, 0.5, 5),
        chooser="instance",
        ap="raw",
        ties="video",
        ambiguous=True,
        cites="jiang2014",
        summary="The THUMOS14 kit: instances choose, overlap must exceed the threshold, ambiguous stretches excuse.",
    ),
):
    protocols.add(_protocol.name, _protocol)
