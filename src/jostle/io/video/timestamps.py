"""When each frame is shown: what one pass over a file finds, and how broken timestamps are repaired."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jostle.errors import MediaError

Ticks = npt.NDArray[np.int64]

_LARGEST_TICK = 2**53  # beyond it two ticks can become one second in float64
_BEYOND_REPAIR = 0.1  # with more than this share of bad stamps, the rest deserve no trust either


class Misled(MediaError):
    """A file is not what its index says. Whoever read it on trust starts again, and looks through all of it first."""


@dataclass
class Survey:
    """What one decoding pass over a file found.

    Frames are numbered in the order in which the decoder shows them.

    Attributes:
        stamps: timestamp of every frame in ticks as stored, None where there is none.
        sums: checksum of every decoded frame, by which a frame reached another way is known to be the same; of a survey
            that was foretold, of the frames that were decoded so far.
        entries: (frame, tick) of keyframes at which decoding may start, in order.
        lost: stored ticks of coded pictures that did not come out.
        flagged: frames that the decoder marked as damaged.
        errors: number of packets the decoder refused.
        expected: number of frames that should have come out, by the file's own account.
        single_thread: whether decoding must stay on one thread to be repeatable, as in a damaged stream.
        notes: what else to tell the reader.
    """

    stamps: list[int | None] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    entries: list[tuple[int, int]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    flagged: list[int] = field(default_factory=list)
    errors: int = 0
    expected: int = 0
    single_thread: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every frame was decoded."""
        return len(self.sums) == len(self.stamps)

    @property
    def damaged(self) -> bool:
        """Whether anything was lost, refused or marked."""
        return bool(self.lost or self.flagged or self.errors)


def repaired(stamps: Sequence[int | None], step: Fraction) -> tuple[Ticks, int, list[str]]:
    """Strictly increasing ticks that start at 0, the tick that became 0, and what had to be done.

    Rules, in order. If more than a tenth of the stamps are missing or not later than the one before, no
    stamp is believed and frames follow each other at the nominal rate (AVI files with packed B-frames are
    such). Otherwise the longest series of increasing stamps is believed, so that one wrong stamp moves no other frame.
    A frame without a believed stamp is shown one nominal step after the one before, or sooner if the next
    believed stamp leaves no room for that. Last, all stamps are moved so that the first frame is shown at 0.

    Args:
        stamps: as stored, None where missing.
        step: ticks between two frames at the nominal rate.

    >>> repaired([5, 6, None, 8, 8], Fraction(1))[0].tolist()
    [0, 1, 2, 3, 4]
    >>> repaired([0, 10, 40, 20, 30, 50], Fraction(10))[0].tolist()
    [0, 10, 15, 20, 30, 50]
    """
    if not stamps:
        return np.zeros(0, np.int64), 0, []
    notes = []
    known = [stamp for stamp in stamps if stamp is not None]
    missing = len(stamps) - len(known)
    backward = sum(later <= earlier for earlier, later in pairwise(known))
    if step * len(stamps) > _LARGEST_TICK:
        step = Fraction(1)  # a rate that no clock can count; any even spacing is as good
    absurd = bool(known) and max(known) - min(known) + step * len(stamps) > _LARGEST_TICK
    if missing + backward > max(2, _BEYOND_REPAIR * len(stamps)) or absurd or not known:
        ticks = np.array([round(i * step) for i in range(len(stamps))], np.int64)
        notes.append(
            f"timestamps cannot be trusted ({missing} missing, {backward} out of order); "
            "frames are shown at the nominal rate"
        )
        return _strictly_increasing(ticks), 0, notes
    times = _filled(stamps, _longest_increasing(stamps), max(1, round(step)))
    if missing:
        notes.append(f"{missing} timestamps are missing; each is put between its neighbours")
    if backward:
        notes.append(f"{backward} timestamps are out of order; each is put between its neighbours")
    start = times[0]
    if start:
        notes.append(f"the first timestamp is {'negative' if start < 0 else 'not zero'}; times count from it")
    return np.array([tick - start for tick in times], np.int64), start, notes


def _longest_increasing(stamps: Sequence[int | None]) -> list[int]:
    """Places of a longest strictly increasing series among the stamps that are there."""
    tails: list[int] = []  # the smallest stamp that ends a series of each length
    places: list[int] = []  # and where it is
    before: dict[int, int] = {}
    for place, stamp in enumerate(stamps):
        if stamp is None:
            continue
        length = bisect_left(tails, stamp)
        if tails[length : length + 1] == [stamp]:
            continue  # of two equal stamps the first is believed
        if length:
            before[place] = places[length - 1]
        tails[length : length + 1] = [stamp]
        places[length : length + 1] = [place]
    series = [places[-1]]
    while series[-1] in before:
        series.append(before[series[-1]])
    return series[::-1]


def _filled(stamps: Sequence[int | None], believed: list[int], step: int) -> list[int]:
    """Strictly increasing ticks that keep the believed stamps wherever whole ticks allow it."""
    known = [(place, stamp) for place in believed if (stamp := stamps[place]) is not None]
    first, earliest = known[0]
    times = [earliest - (first - i) * step for i in range(first)]
    for (place, stamp), (following, limit) in pairwise([*known, (len(stamps), None)]):
        assert stamp is not None
        tick = max(stamp, times[-1] + 1) if times else stamp
        between = following - place
        room = step if limit is None else min(step, max(1, (limit - stamp) // between))
        times.extend(tick + i * room for i in range(between))
    return times


def _strictly_increasing(ticks: Ticks) -> Ticks:
    """The same ticks, with room made where a clock coarser than the frame rate rounds two to one."""
    ramp = np.arange(len(ticks))
    result: Ticks = np.maximum.accumulate(ticks - ramp) + ramp
    return result


def with_lost(ticks: Ticks, lost: Sequence[int]) -> tuple[Ticks, npt.NDArray[np.int64]]:
    """Ticks of shown and lost frames together, and for each the frame to show: the last one that decoded.

    Lost frames before the first good one are left out, as there is nothing to hold.

    >>> ticks, shown = with_lost(np.array([0, 1, 4]), [2, 3])
    >>> ticks.tolist(), shown.tolist()
    ([0, 1, 2, 3, 4], [0, 1, 1, 1, 2])
    """
    held = [tick for tick in lost if len(ticks) and tick > ticks[0]]
    every = np.unique(np.concatenate([ticks, np.array(held, np.int64)]))
    return every, np.searchsorted(ticks, every, side="right").astype(np.int64) - 1


def spans(starts: Sequence[float], ends: Sequence[float]) -> list[tuple[float, float]]:
    """Half-open stretches joined where they touch.

    >>> spans([0.0, 3.0, 1.0], [1.0, 4.0, 2.0])
    [(0.0, 2.0), (3.0, 4.0)]
    """
    joined: list[tuple[float, float]] = []
    for start, end in sorted(zip(starts, ends, strict=True)):
        if joined and start <= joined[-1][1] + 1e-9:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
