"""A live stream of pictures: plain rules and a network give one verdict a frame, a few frames late at most.

Where the stream is mended, damaged pictures are replaced on the way.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jostle.core.types.clip import Frame, check_frames
from jostle.errors import BadValue
from jostle.io.video.frame_folder import DEFAULT_FPS
from jostle.mending.confidence import DECODER_REPORT, clean_confidence, damage_confidence
from jostle.mending.descriptor import describe_frame
from jostle.mending.frame_facts import frame_facts
from jostle.mending.loading import BUNDLED, stream_inspector
from jostle.mending.rule_set import DECODER, RuleSet
from jostle.mending.stream_repair import JudgedPicture, Picture, StreamMendMethod, StreamRepair
from jostle.mending.verdicts import Verdict

if TYPE_CHECKING:
    from jostle.mending.inspection import Inspector
    from jostle.mending.live_network import LiveNetwork

HOLD_LIMIT_S = 5.0
MAX_LOOKAHEAD = 250  # frames; memory and delay are bounded by it

# The network must be sure in so many of so many frames, and is believed until it is no longer. More of them give fewer
# false alarms, and need look-ahead.
NETWORK_ON, NETWORK_FRAMES, NETWORK_WINDOW = 0.9995, 4, 5
CONFIRMED_ON, CONFIRMED_FRAMES, CONFIRMED_WINDOW = 0.9999, 12, 12
CONFIRMED_LOOKAHEAD = 5
NETWORK_OFF = 0.5


def open_network(inspector: Inspector) -> LiveNetwork:
    """Return the causal network of an inspector on a new stream."""
    from jostle.mending.live_network import LiveNetwork  # needs torch, which the rules alone do without

    return LiveNetwork(inspector)


@dataclass(eq=False, slots=True)
class PendingFrame:
    """Frame that waits for its verdict.

    Attributes:
        index: number of the frame.
        time: its time in seconds.
        findings: kind and strength by the rule's number.
        alarm: whether a persistent alarm of the network holds.
        doubt: probability of damage that the network sees, whether it persists or not.
    """

    index: int
    time: float
    findings: dict[int, tuple[str, float]] = field(default_factory=dict)
    alarm: bool = False
    doubt: float = 0.0

    def verdict(self) -> Verdict:
        """Return the verdict: of the rules, else of the network, else clean."""
        damages = [finding for finding in self.findings.values() if finding[0] != "clean"]
        if damages:
            kind, _ = max(damages, key=lambda finding: finding[1])
            confidence = DECODER_REPORT if DECODER in self.findings else damage_confidence(kind, by_rule=True)
            return Verdict(self.index, self.time, True, confidence, kind)
        if self.alarm:
            return Verdict(self.index, self.time, True, damage_confidence("unknown", by_rule=False), "unknown")
        return Verdict(self.index, self.time, False, clean_confidence(self.doubt), "clean")


class NetworkAlarm:
    """Persistent alarm of a network: on after some sure frames of a few, off after two low ones.

    Args:
        lookahead: later frames that a verdict may wait for; with some, the network must be surer, and for longer.
    """

    def __init__(self, lookahead: int) -> None:
        if lookahead >= CONFIRMED_LOOKAHEAD:
            self._sure, self._frames, window = CONFIRMED_ON, CONFIRMED_FRAMES, CONFIRMED_WINDOW
        else:
            self._sure, self._frames, window = NETWORK_ON, NETWORK_FRAMES, NETWORK_WINDOW
        self._recent: deque[tuple[int, float]] = deque(maxlen=window)
        self._on = False

    def push(self, index: int, probability: float) -> list[int]:
        """Add the probability of damage of a frame; return frames that the alarm holds for."""
        self._recent.append((index, probability))
        begun = False
        if not self._on:
            sure = [number for number, one in self._recent if one >= self._sure]
            self._on = begun = len(sure) >= self._frames
        elif all(one < NETWORK_OFF for _, one in list(self._recent)[-2:]):
            self._on = False
        if not self._on:
            return []
        frames = self._recent if begun else [(index, probability)]
        return [number for number, one in frames if one >= NETWORK_OFF]


class VideoStream:
    """A stream of pictures: a verdict on each, at most `lookahead` pictures late, in bounded memory.

    Plain rules find what can be said without training; the network finds the rest, and must be sure for some frames in
    a row. After a gap in time, a time that goes back or another size of frames, they begin anew; the numbers of frames
    go on. A freeze and a black picture are followed across a gap.

    Args:
        lookahead: later frames that a verdict may wait for, 0 to 250. With 0 a verdict comes with its frame, and the
            first frames of a freeze, a flash or a change that must last are decided without knowing how it goes on.
        how: as of `StreamRepair`.
        hold_limit: as of `StreamRepair`.
        inspector: `jostle`, a path of weights, or an `Inspector`, whose network is used.
        fps: rate of frames that come without times; default: 30.
        use_network: False leaves the rules alone, which need no torch.
    """

    def __init__(
        self,
        *,
        lookahead: int = 5,
        how: StreamMendMethod = "mark",
        hold_limit: float = HOLD_LIMIT_S,
        inspector: str | Path | Inspector = BUNDLED,
        fps: float | None = None,
        use_network: bool = True,
    ) -> None:
        if isinstance(lookahead, bool) or not isinstance(lookahead, int) or lookahead < 0:
            raise BadValue(f"lookahead is a number of frames, 0 or more, got {lookahead!r}")
        if fps is not None and not (fps > 0 and math.isfinite(fps)):
            raise BadValue(f"fps must be a positive number, got {fps!r}")
        self.fps = float(DEFAULT_FPS if fps is None else fps)
        # A blend needs the verdict on the next good picture, so that it shares the look-ahead with the inspection.
        self._ahead = lookahead // 2 if how == "blend" else lookahead
        self._make_repair = partial(StreamRepair, how, reach=lookahead - self._ahead, hold_limit=hold_limit)
        self._repair = self._make_repair()
        self._inspector = stream_inspector(inspector) if use_network else None
        if self._ahead > MAX_LOOKAHEAD:
            raise BadValue(f"lookahead must be a whole number of frames from 0 to {MAX_LOOKAHEAD}, got {self._ahead!r}")
        self._pictures: deque[Picture] = deque()
        self._pending: deque[PendingFrame] = deque()
        self._count = 0
        self._size: tuple[int, ...] = ()
        self._rules = RuleSet()
        self._begin()

    def push(
        self, frame: Frame, time: float | None = None, picture: Picture | None = None, *, concealed: bool = False
    ) -> list[JudgedPicture]:
        """Take the next frame; return the pictures whose verdicts became known, in order.

        Args:
            frame: (H, W, 3) uint8 RGB, for the inspection.
            time: seconds; by default by the rate.
            picture: what is given out for the frame, by default itself; must not be changed afterwards.
            concealed: whether the decoder says that the frame shows what it concealed.
        """
        check_frames(frame[None] if isinstance(frame, np.ndarray) else frame)
        seconds = self._count / self.fps if time is None else float(time)
        if not math.isfinite(seconds):
            raise BadValue(
                f"frame {self._count}: its time is {seconds}; pass seconds, or None where it is not known", fault="F144"
            )
        self._pictures.append(frame if picture is None else picture)
        verdicts = self._inspect(frame, seconds, concealed)
        self._count += 1
        return [judged for verdict in verdicts for judged in self._judge(verdict)]

    def flush(self) -> list[JudgedPicture]:
        """Return what is left at the end of a stream, or where it breaks off; frames after it have no past."""
        judged = [one for verdict in self._release(0) for one in self._judge(verdict)]
        judged += self._repair.flush()
        self._repair = self._make_repair()
        self._begin()
        return judged

    def _judge(self, verdict: Verdict) -> Iterator[JudgedPicture]:
        yield from self._repair.push(verdict, self._pictures.popleft())

    def _inspect(self, frame: Frame, time: float, concealed: bool) -> list[Verdict]:
        """Add a frame and return the verdicts that became known."""
        self._follow(frame.shape[:2], time)
        index = self._count
        self._pending.append(PendingFrame(index, time))
        descriptor = describe_frame(frame)
        facts = frame_facts(frame, descriptor)
        for number, finding in self._rules.push(index, time, facts, concealed):
            for pending in self._pending_between(finding.first, finding.last):
                pending.findings[number] = finding.kind, finding.strength
        if self._network is not None:
            self._add_prediction(index, self._network.push(descriptor))
        return self._release(self._ahead)

    def _follow(self, size: tuple[int, ...], time: float) -> None:
        """Begin anew where a frame cannot be compared with the one before."""
        if self._count and size != self._size:
            self._begin()
        elif self._rules.follow(time):
            self._begin_network()
        self._size = size

    def _begin(self) -> None:
        self._rules.restart()
        self._begin_network()

    def _begin_network(self) -> None:
        self._network = None if self._inspector is None else open_network(self._inspector)
        self._alarm = NetworkAlarm(self._ahead)

    def _add_prediction(self, index: int, probability: float) -> None:
        self._pending[-1].doubt = probability
        for number in self._alarm.push(index, probability):
            for pending in self._pending_between(number, number):
                pending.alarm = True

    def _pending_between(self, first: int, last: int) -> list[PendingFrame]:
        if not self._pending:
            return []
        oldest = self._pending[0].index
        lo, hi = max(first - oldest, 0), min(last - oldest + 1, len(self._pending))
        return [self._pending[number] for number in range(lo, hi)]

    def _release(self, keep: int) -> list[Verdict]:
        """Return the verdicts of all frames but the last ones."""
        return [self._pending.popleft().verdict() for _ in range(len(self._pending) - keep)]
