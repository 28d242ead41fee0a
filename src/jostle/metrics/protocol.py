"""A protocol: one public evaluator's rules for scoring detections, as data.

The four evaluators people cite disagree on thresholds, on who chooses in matching, on ties, on duplicate and empty
instances, and on what is done with an ambiguous stretch. Each is named here, so that a number can say which it is.
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
    """How detections are scored.

    Attributes:
        name: what `--protocol` is given.
        tious: the thresholds of temporal overlap it is usually run with.
        chooser: who picks in matching. `prediction`: from the surest down, each prediction takes the free instance
            it overlaps most, if the overlap is at least the threshold. `instance`: in file order, each instance
            takes the free prediction that overlaps it most, if the overlap is more than the threshold.
        ap: `interpolated` (precision raised to the best at any higher recall) or `raw` (mean precision at hits).
        ties: which of several predictions with one score comes first: the `later` row of the file, or, by `video`,
            that of the video whose id sorts first, and there the earlier row.
        duplicate_tolerance: instances of one class in one video whose two ends lie within this many seconds are
            one; None keeps both.
        shortest: instances shorter than this many seconds are left out; None keeps them all.
        ambiguous: whether predictions that touch an ambiguous stretch, and match nothing, are left uncounted.
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
        """The instances this protocol counts; what it leaves out is counted in `left_out`."""
        if self.shortest is not None:
            truth = truth.keep(truth.end - truth.start >= self.shortest, "shorter than the protocol allows")
        if self.duplicate_tolerance is not None:
            truth = truth.keep(~_repeated(truth, self.duplicate_tolerance), "duplicate of an earlier instance")
        return truth

    def stretches(self, truth: Truth) -> Spans:
        """The ambiguous stretches, if this protocol knows of them."""
        return truth.ambiguous if self.ambiguous else Spans.none()


def thresholds(first: float, last: float, count: int) -> tuple[float, ...]:
    """Thresholds as the public programs space them: `linspace`, whose 0.6 differs from a literal in the last bit."""
    return tuple(np.linspace(first, last, count).tolist())


def checked_tious(values: npt.ArrayLike) -> Floats:
    """(T,) thresholds.

    Raises:
        BadValue: unless all lie above 0 and at most at 1.
    """
    made = np.atleast_1d(np.array(values, np.float64))
    if made.ndim != 1 or not len(made) or not ((made > 0) & (made <= 1)).all():
        raise BadValue(f"thresholds of tIoU lie above 0 and at most at 1, got {made.tolist()}")
    return made


def _repeated(truth: Truth, tolerance: float) -> Flags:
    """(G,) whether an earlier kept instance of the same video and class has both ends within `tolerance` seconds."""
    gone = np.zeros(len(truth), bool)
    order = np.lexsort((np.arange(len(truth)), truth.label, truth.video))
    keys = np.stack([truth.video[order], truth.label[order]])
    edges = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    for rows in np.split(order, edges):
        if len(rows) > 1:
            gone[rows] = _repeated_in(truth.start[rows], truth.end[rows], tolerance)
    return gone


def _repeated_in(start: Floats, end: Floats, tolerance: float) -> Flags:
    gone = np.zeros(len(start), bool)
    for i in range(1, len(start)):
        kept = ~gone[:i]
        near = (abs(start[:i] - start[i]) <= tolerance) & (abs(end[:i] - end[i]) <= tolerance)
        gone[i] = bool((near & kept).any())
    return gone


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
