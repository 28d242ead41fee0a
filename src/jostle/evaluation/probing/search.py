"""Search for the smallest damage that loses an item: how many frames in a row, where, at which severity.

One damaged frame is tried at every position. Longer runs of frames are tried at positions half a run apart, their
lengths first doubled, then narrowed down between the longest that no position loses and the shortest that one does. At
last the severities are tried at the place that was found, and longer runs around it, to see whether more damage also
does more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.recipe import Cell

LENGTHS_AT_ONCE = 7  # lengths between two bounds that are tried in one round


@dataclass(frozen=True)
class Trial:
    """Damage to be tried: a corruption of a run of frames."""

    kind: str  # a spec without severity
    severity: int
    first: int
    frames: int

    @property
    def cell(self) -> Cell:
        """The trial as a cell of a benchmark."""
        spec, placement = f"{self.kind}:{self.severity}", f"frames:{self.first}-{self.first + self.frames}"
        return Cell(f"{spec}@{placement}", (spec,), placement, "probe", True)


Span = tuple[int, int]  # the first frame of an item, and the one after its last
Judgement = tuple[Floats, Flags]  # the score of each item, and whether the model gets it right
Judge = Callable[[Sequence[Trial]], Sequence[Judgement]]


@dataclass(frozen=True)
class BreakingPoint:
    """The smallest damage of one kind that loses an item.

    Attributes:
        item: index of the item in its video.
        kind: the corruption, a spec without severity.
        frames: length of the damage; None if even the whole item may be damaged.
        position: its first frame; the one with the lowest score where several lose the item.
        severity: the lowest severity of this damage that loses the item.
        bracket: the longest damage that loses the item at no position tried, and `frames`.
        monotone: whether longer damage around this place, and every higher severity of it, lose the item as well.
    """

    item: int
    kind: str
    frames: int | None
    position: int | None
    severity: int | None
    bracket: tuple[int, int | None]
    monotone: bool


@dataclass(frozen=True, eq=False)
class FrailtyCurve:
    """Score of an item with one damaged frame, by the position of that frame."""

    item: int
    kind: str
    severity: int
    positions: tuple[int, ...]
    scores: Floats
    kept: Flags  # whether the model still gets the item right


def severities_of(kind: str) -> list[int]:
    """Return the severities of a corruption that differ where its placement is given.

    >>> severities_of("thumos14-c/black_frame"), severities_of("kinetics-c/fog")
    ([1], [1, 2, 3, 4, 5])
    """
    values = Spec.parse(f"{kind}:1").entry.values
    return [i + 1 for i, value in enumerate(values) if value not in values[:i]]


@dataclass(eq=False)
class _Bounds:
    """State of the search for one item and kind."""

    item: int
    kind: str
    span: Span
    low: int  # no position tried loses the item with so many frames
    high: Trial | None = None  # the shortest damage found that does


class Search:
    """Search for the breaking points of the items of one video.

    Args:
        spans: frames of each item.
        kept: whether the model has each item in the clean video; others have no breaking point.
        kinds: severities of each corruption, ascending; lengths are searched at the last.
        judge: judges every item of the video under each of several trials.
        step: frames between the positions of single damaged frames.
    """

    def __init__(
        self, spans: Sequence[Span], kept: Flags, kinds: Mapping[str, Sequence[int]], judge: Judge, *, step: int = 1
    ) -> None:
        self._spans, self._kinds, self._step = list(spans), kinds, step
        self._judge = judge
        self._items = [int(i) for i in np.flatnonzero(kept)]
        self._known: dict[Trial, Judgement] = {}

    @property
    def trials(self) -> int:
        """Number of trials so far."""
        return len(self._known)

    def curves(self) -> list[FrailtyCurve]:
        """Return what one damaged frame at each position costs each item."""
        self._try(trial for kind in self._kinds for item in self._items for trial in self._runs(item, kind, 1))
        return [self._curve(item, kind) for kind in self._kinds for item in self._items]

    def breaking_points(self) -> list[BreakingPoint]:
        """Return the breaking point of each item by each kind."""
        curves = self.curves()
        searches = [_Bounds(curve.item, curve.kind, self._spans[curve.item], 0) for curve in curves]
        for one in searches:
            self._narrow(one, [1])
        unbroken = [one for one in searches if one.high is None]
        lengths = {one.item: list(_doublings(one.span[1] - one.span[0])) for one in unbroken}
        self._try(trial for one in unbroken for n in lengths[one.item] for trial in self._runs(one.item, one.kind, n))
        for one in unbroken:
            self._narrow(one, lengths[one.item])
        while open_searches := [one for one in searches if one.high is not None and one.high.frames - one.low > 1]:
            between = {id(one): _between(one.low, one.high.frames) for one in open_searches if one.high is not None}
            self._try(
                trial for one in open_searches for n in between[id(one)] for trial in self._runs(one.item, one.kind, n)
            )
            for one in open_searches:
                self._narrow(one, between[id(one)])
        self._try(trial for one in searches for trial in self._around(one))
        return [self._found(one) for one in searches]

    def _runs(self, item: int, kind: str, frames: int) -> list[Trial]:
        """Return the trials of damage of one length."""
        first, stop = self._spans[item]
        step = self._step if frames == 1 else max(frames // 2, self._step)
        starts = [*range(first, stop - frames, step), stop - frames]
        return [Trial(kind, self._kinds[kind][-1], start, frames) for start in starts]

    def _try(self, trials: Iterable[Trial]) -> None:
        """Judge those trials that were not judged before."""
        new = [trial for trial in dict.fromkeys(trials) if trial not in self._known]
        if new:
            self._known.update(zip(new, self._judge(new), strict=True))

    def _loses(self, trial: Trial, item: int) -> bool:
        return not self._known[trial][1][item]

    def _narrow(self, one: _Bounds, lengths: Sequence[int]) -> None:
        """Narrow the bounds of a search by the trials of these lengths, ascending."""
        for frames in lengths:
            losing = [trial for trial in self._runs(one.item, one.kind, frames) if self._loses(trial, one.item)]
            if losing:
                one.high = min(losing, key=lambda trial: float(self._known[trial][0][one.item]))
                return
            one.low = frames

    def _around(self, one: _Bounds) -> Iterator[Trial]:
        """Yield what tells whether more damage does more: other severities, and longer damage around the place."""
        if one.high is None:
            return
        for severity in self._kinds[one.kind][:-1]:
            yield Trial(one.kind, severity, one.high.first, one.high.frames)
        first, stop = one.span
        for frames in (2 * one.high.frames, stop - first):
            if one.high.frames < frames <= stop - first:
                middle = one.high.first + (one.high.frames - frames) // 2
                yield Trial(one.kind, one.high.severity, min(max(middle, first), stop - frames), frames)

    def _curve(self, item: int, kind: str) -> FrailtyCurve:
        runs = self._runs(item, kind, 1)
        judged = [self._known[trial] for trial in runs]
        scores = np.array([scores[item] for scores, _ in judged], np.float64)
        kept = np.array([kept[item] for _, kept in judged], np.bool_)
        return FrailtyCurve(item, kind, runs[0].severity, tuple(trial.first for trial in runs), scores, kept)

    def _found(self, one: _Bounds) -> BreakingPoint:
        if one.high is None:
            return BreakingPoint(one.item, one.kind, None, None, None, (one.low, None), True)
        more = list(self._around(one))
        longer = [trial for trial in more if trial.frames > one.high.frames]
        by_severity = {
            trial.severity: self._loses(trial, one.item) for trial in [*more, one.high] if trial not in longer
        }
        lowest = min(severity for severity, lost in by_severity.items() if lost)
        stronger = all(lost for severity, lost in by_severity.items() if severity >= lowest)
        monotone = stronger and all(self._loses(trial, one.item) for trial in longer)
        bracket = (one.low, one.high.frames)
        return BreakingPoint(one.item, one.kind, one.high.frames, one.high.first, lowest, bracket, monotone)


def _doublings(length: int) -> Iterator[int]:
    """Yield 2, 4, 8 and so on below a length, then the length itself.

    >>> list(_doublings(11)), list(_doublings(1))
    ([2, 4, 8, 11], [])
    """
    frames = 2
    while frames < length:
        yield frames
        frames *= 2
    if length > 1:
        yield length


def _between(low: int, high: int) -> list[int]:
    """Return lengths between two, few at a time.

    >>> _between(4, 8), _between(32, 64)
    ([5, 6, 7], [36, 40, 44, 48, 52, 56, 60])
    """
    return sorted({int(n) for n in np.linspace(low, high, min(LENGTHS_AT_ONCE, high - low - 1) + 2).round()[1:-1]})
