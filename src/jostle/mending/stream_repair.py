"""Replacement of the damaged pictures of a stream by ones that are known to be good, within a bounded delay."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue
from jostle.mending.confidence import clean_confidence
from jostle.mending.mender import menders
from jostle.mending.menders.blend import BLEND_UNIT, blend_frames
from jostle.mending.verdicts import Verdict

StreamMendMethod = Literal["hold", "blend", "mark"]
Picture = npt.NDArray[Any]  # integers: an RGB frame, or the bytes of its planes as they came
RECENT = 8  # clean pictures that are kept: an alarm may come a few frames after the damage that it is about
SURE = clean_confidence(0.0)  # confidence from which a clean picture may be held: the network has no doubt


@dataclass(frozen=True, eq=False, slots=True)
class JudgedPicture:
    """A verdict and the picture to show for it.

    Attributes:
        picture: the picture itself, or what stands in for it; None if there is nothing good to show.
        lost: whether the stream is lost: damaged for longer than a picture may be held.
    """

    verdict: Verdict
    picture: Picture | None
    lost: bool = False


class StreamRepair:
    """Gives out the pictures of a stream in order, the damaged ones replaced by good ones, never by damaged ones.

    Args:
        how: `hold` the last picture known to be good; `blend` from it to the next good one, where that one is known in
            time, else hold; `mark` leaves every picture as it is.
        reach: judged pictures that may wait for the next good one; only for `blend`.
        hold_limit: seconds for which a picture may be held. Then the stream is lost until a clean picture comes, and
            there is none to display: a held picture looks live.
    """

    def __init__(self, how: StreamMendMethod, *, reach: int, hold_limit: float) -> None:
        if how not in get_args(StreamMendMethod):
            known = ", ".join(get_args(StreamMendMethod))
            why = "; other menders need the frames of a whole video" if how in menders else ""
            raise BadValue(f"unknown method {how!r} of mending a stream; choose one of {known}{why}")
        if not hold_limit >= 0:
            raise BadValue(f"hold_limit is the longest hold in seconds, 0 or more, got {hold_limit}")
        self._how, self._reach, self._hold_limit = how, reach if how == "blend" else 0, hold_limit
        self._waiting: deque[tuple[Verdict, Picture]] = deque()
        self._recent: deque[tuple[Verdict, Picture]] = deque(maxlen=RECENT)
        self._damage: _Damage | None = None

    def push(self, verdict: Verdict, picture: Picture) -> Iterator[JudgedPicture]:
        """Take the next picture and its verdict; yield the pictures that can be displayed now."""
        self._waiting.append((verdict, picture))
        yield from self._settle(self._reach)

    def flush(self) -> Iterator[JudgedPicture]:
        """Yield the pictures that still wait, at the end of a stream."""
        yield from self._settle(0)

    def _settle(self, reach: int) -> Iterator[JudgedPicture]:
        while self._waiting:
            verdict, picture = self._waiting[0]
            if verdict.damaged and len(self._waiting) <= reach and self._next_good(picture) is None:
                return
            self._waiting.popleft()
            yield self._show(verdict, picture)

    def _show(self, verdict: Verdict, picture: Picture) -> JudgedPicture:
        if not verdict.damaged:
            self._damage = None
            self._recent.append((verdict, picture))
            return JudgedPicture(verdict, picture)
        if self._damage is None:
            self._damage = _Damage(verdict)
        lost = self._damage.go_on(verdict) > self._hold_limit
        if self._how == "mark":
            return JudgedPicture(verdict, picture, lost)
        if lost:
            return JudgedPicture(verdict, None, lost=True)
        return JudgedPicture(verdict, self._stand_in(verdict, picture))

    def _stand_in(self, verdict: Verdict, picture: Picture) -> Picture | None:
        assert self._damage is not None
        held = self._held(picture)
        following = self._next_good(picture) if self._how == "blend" else None
        if following is None:
            self._damage.held_until = verdict.index
            return held
        index, good = following
        if held is None:  # the stream began with damage
            return good
        since = self._damage.held_until
        faded: Picture = blend_frames(held, good, (verdict.index - since) * BLEND_UNIT // (index - since))
        faded.flags.writeable = False
        return faded

    def _held(self, picture: Picture) -> Picture | None:
        """Return the newest picture of this size that surely was clean, or the most likely one."""
        fitting = [(one, good) for one, good in self._recent if same_layout(good, picture)]
        sure = [good for one, good in fitting if one.confidence >= SURE]
        if sure:
            return sure[-1]
        return max(fitting, key=lambda pair: pair[0].confidence)[1] if fitting else None

    def _next_good(self, picture: Picture) -> tuple[int, Picture] | None:
        for verdict, other in self._waiting:
            if not verdict.damaged and same_layout(other, picture):
                return verdict.index, other
        return None


class _Damage:
    """A run of damaged pictures that goes on.

    Attributes:
        held_until: index of the last picture for which the good one before the run was displayed as it is.
    """

    def __init__(self, first: Verdict) -> None:
        self.held_until = first.index - 1
        self._seconds, self._time = 0.0, first.time

    def go_on(self, verdict: Verdict) -> float:
        """Return the seconds since the run began; a clock that is set back does not count."""
        self._seconds += max(verdict.time - self._time, 0.0)
        self._time = verdict.time
        return self._seconds


def same_layout(one: Picture, other: Picture) -> bool:
    """Return whether two pictures have the same size and kind of samples."""
    return bool(one.shape == other.shape and np.dtype(one.dtype) == other.dtype)
