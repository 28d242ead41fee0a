"""Frame timestamps: the result of scanning a file, and the repair of broken timestamps."""

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

_TIME_BASES = (Fraction(1, 1000), Fraction(1, 90_000))  # of Matroska and of MPEG
_NANOSECOND = Fraction(1, 1_000_000_000)
_TOLERANCE_S = 2e-9  # of a time in seconds that stands for a tick: rounding, at hours
_LARGEST_TICK = 2**53  # beyond it two ticks can become the same float64 time
_MAX_BAD_SHARE = 0.1  # with more bad stamps than this share, none are trusted


class IndexMismatch(MediaError):
    """A file that differs from its index; readers that relied on the index have to start again with a scan."""


@dataclass
class DecodeScan:
    """Result of one decoding pass over a file.

    Frames are numbered in the order in which the decoder shows them.
    """

    # Timestamp of every frame in ticks as stored, None where there is none
    stamps: list[int | None] = field(default_factory=list)
    # Checksum of every decoded frame, to verify frames reached by seeking; of a predicted scan, of the frames decoded
    # so far
    sums: list[int] = field(default_factory=list)
    # (frame, tick) of keyframes at which decoding may start, in order
    entries: list[tuple[int, int]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)  # stored ticks of coded pictures that did not come out
    flagged: list[int] = field(default_factory=list)  # frames that the decoder marked as damaged
    concealed: list[int] = field(default_factory=list)  # those and what was predicted from them, up to a key frame
    errors: int = 0  # number of packets the decoder refused
    expected: int = 0  # number of frames that should have come out, by the file's own account
    single_thread: bool = False  # whether decoding must stay on one thread to be repeatable, as in a damaged stream
    notes: list[str] = field(default_factory=list)  # further remarks for the user

    @property
    def complete(self) -> bool:
        """Whether every frame was decoded."""
        return len(self.sums) == len(self.stamps)

    @property
    def damaged(self) -> bool:
        """Whether frames were lost, refused or marked as damaged."""
        return bool(self.lost or self.flagged or self.errors)


def repair_timestamps(stamps: Sequence[int | None], step: Fraction) -> tuple[Ticks, int, list[str]]:
    """Return strictly increasing ticks from 0, the tick that became 0, and notes on repairs.

    Rules, in order. If more than a tenth of the stamps are missing or not later than the one before, no
    stamp is trusted and frames follow each other at the nominal rate (as in AVI files with packed B-frames).
    Otherwise the longest series of increasing stamps is trusted, so that one wrong stamp moves no other frame.
    A frame without a trusted stamp is displayed one nominal step after the one before, or sooner if the next
    trusted stamp requires it. Last, all stamps are moved so that the first frame is displayed at 0.

    Args:
        stamps: as stored, None where missing.
        step: ticks between two frames at the nominal rate.

    >>> repair_timestamps([5, 6, None, 8, 8], Fraction(1))[0].tolist()
    [0, 1, 2, 3, 4]
    >>> repair_timestamps([0, 10, 40, 20, 30, 50], Fraction(10))[0].tolist()
    [0, 10, 15, 20, 30, 50]
    """
    if not stamps:
        return np.zeros(0, np.int64), 0, []
    notes = []
    known = [stamp for stamp in stamps if stamp is not None]
    missing = len(stamps) - len(known)
    backward = sum(later <= earlier for earlier, later in pairwise(known))
    if step * len(stamps) > _LARGEST_TICK:
        step = Fraction(1)  # the rate is too low for the clock; any even spacing will do
    absurd = bool(known) and max(known) - min(known) + step * len(stamps) > _LARGEST_TICK
    if missing + backward > max(2, _MAX_BAD_SHARE * len(stamps)) or absurd or not known:
        ticks = np.array([round(i * step) for i in range(len(stamps))], np.int64)
        notes.append(
            f"timestamps cannot be trusted ({missing} missing, {backward} out of order); "
            "frames are displayed at the nominal rate"
        )
        return _strictly_increasing(ticks), 0, notes
    times = _fill_stamps(stamps, _longest_increasing(stamps), max(1, round(step)))
    if missing:
        notes.append(f"{missing} timestamps are missing; each is put between its neighbours")
    if backward:
        notes.append(f"{backward} timestamps are out of order; each is put between its neighbours")
    start = times[0]
    if start:
        notes.append(f"the first timestamp is {'negative' if start < 0 else 'not zero'}; times count from it")
    return np.array([tick - start for tick in times], np.int64), start, notes


def _longest_increasing(stamps: Sequence[int | None]) -> list[int]:
    """Return the indices of a longest strictly increasing series of stamps."""
    tails: list[int] = []  # smallest last stamp of a series of each length
    indices: list[int] = []  # and its index
    before: dict[int, int] = {}
    for index, stamp in enumerate(stamps):
        if stamp is None:
            continue
        length = bisect_left(tails, stamp)
        if tails[length : length + 1] == [stamp]:
            continue  # of two equal stamps the first is trusted
        if length:
            before[index] = indices[length - 1]
        tails[length : length + 1] = [stamp]
        indices[length : length + 1] = [index]
    series = [indices[-1]]
    while series[-1] in before:
        series.append(before[series[-1]])
    return series[::-1]


def _fill_stamps(stamps: Sequence[int | None], trusted: list[int], step: int) -> list[int]:
    """Return strictly increasing ticks that keep trusted stamps wherever whole ticks allow it."""
    known = [(index, stamp) for index in trusted if (stamp := stamps[index]) is not None]
    first, earliest = known[0]
    times = [earliest - (first - i) * step for i in range(first)]
    for (index, stamp), (following, limit) in pairwise([*known, (len(stamps), None)]):
        assert stamp is not None
        tick = max(stamp, times[-1] + 1) if times else stamp
        between = following - index
        spacing = step if limit is None else min(step, max(1, (limit - stamp) // between))
        times.extend(tick + i * spacing for i in range(between))
    return times


def _strictly_increasing(ticks: Ticks) -> Ticks:
    """Increase ticks where a clock coarser than the frame rate rounds two to the same value."""
    ramp = np.arange(len(ticks))
    result: Ticks = np.maximum.accumulate(ticks - ramp) + ramp
    return result


def exact_ticks(seconds: npt.NDArray[np.float64], fps: Fraction) -> tuple[Ticks, Fraction]:
    """Return times as multiples of a time base: that of the rate, of a container, or nanoseconds.

    >>> exact_ticks(np.array([0.0, 0.04, 0.08]), Fraction(25))
    (array([0, 1, 2]), Fraction(1, 25))
    """
    for time_base in (1 / fps, *_TIME_BASES):
        ticks = np.round(seconds / float(time_base))
        if np.allclose(ticks * float(time_base), seconds, rtol=1e-12, atol=_TOLERANCE_S):
            return ticks.astype(np.int64), time_base
    return np.round(seconds / float(_NANOSECOND)).astype(np.int64), _NANOSECOND


def insert_lost(ticks: Ticks, lost: Sequence[int]) -> tuple[Ticks, npt.NDArray[np.int64]]:
    """Merge ticks of decoded and lost frames; returns them with the decoded frame to show for each.

    Lost frames before the first good one are left out, as there is nothing to hold.

    >>> ticks, images = insert_lost(np.array([0, 1, 4]), [2, 3])
    >>> ticks.tolist(), images.tolist()
    ([0, 1, 2, 3, 4], [0, 1, 1, 1, 2])
    """
    later_lost = [tick for tick in lost if len(ticks) and tick > ticks[0]]
    all_ticks = np.unique(np.concatenate([ticks, np.array(later_lost, np.int64)]))
    return all_ticks, np.searchsorted(ticks, all_ticks, side="right").astype(np.int64) - 1


def spans(starts: Sequence[float], ends: Sequence[float]) -> list[tuple[float, float]]:
    """Merge half-open intervals that touch or overlap.

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
