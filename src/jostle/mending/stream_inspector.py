"""Inspection of a live stream: plain rules and a network give one verdict a frame, a few frames late at most."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jostle.core.types.clip import Frame, check_frames, check_rate
from jostle.errors import BadValue
from jostle.io.video.frame_folder import DEFAULT_FPS
from jostle.mending.confidence import DECODER_REPORT, clean_confidence, damage_confidence
from jostle.mending.descriptor import describe_frame
from jostle.mending.frame_facts import frame_facts
from jostle.mending.rule_set import DECODER, RuleSet
from jostle.mending.verdicts import Verdict

if TYPE_CHECKING:
    from jostle.mending.inspection import Inspector
    from jostle.mending.live_network import LiveNetwork

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


class StreamInspector:
    """Inspector of a stream: one verdict a frame, at most `lookahead` frames late, in bounded memory.

    Plain rules find what can be said without training; the network finds the rest, and must be sure for some frames in
    a row. After a gap in time, a time that goes back or another size of frames, they begin anew; the numbers of frames
    go on. A freeze and a black picture are followed across a gap.

    Args:
        lookahead: later frames that a verdict may wait for, 0 to 250. With 0 a verdict comes with its frame, and the
            first frames of a freeze, a flash or a change that must last are decided without knowing how it goes on.
        inspector: the inspector whose network is used; None for the bundled one.
        fps: rate of frames that are pushed without a time; default: 30.
        use_network: False leaves the rules alone, which need no torch.
    """

    def __init__(
        self,
        *,
        lookahead: int = 5,
        inspector: Inspector | None = None,
        fps: float | None = None,
        use_network: bool = True,
    ) -> None:
        if isinstance(lookahead, bool) or not isinstance(lookahead, int) or not 0 <= lookahead <= MAX_LOOKAHEAD:
            raise BadValue(f"lookahead must be a whole number of frames from 0 to {MAX_LOOKAHEAD}, got {lookahead!r}")
        self.lookahead = lookahead
        self._interval = 1 / float(DEFAULT_FPS if fps is None else check_rate(fps))
        if use_network and inspector is None:
            from jostle.mending.loading import load_inspector

            inspector = load_inspector()
        self._inspector = inspector if use_network else None
        self._pending: deque[PendingFrame] = deque()
        self._count, self._time = 0, 0.0
        self._size: tuple[int, ...] = ()
        self._rules = RuleSet()
        self._begin()

    def push(self, frame: Frame, time: float | None = None, *, concealed: bool = False) -> list[Verdict]:
        """Add a frame and return the verdicts that became known, in order.

        Args:
            frame: (H, W, 3) uint8 RGB.
            time: in seconds; default: one interval of `fps` after the frame before.
            concealed: whether the decoder says that the frame shows what it concealed.
        """
        check_frames(frame[None] if isinstance(frame, np.ndarray) else frame)
        time = self._next_time() if time is None else _check_time(time)
        self._follow(frame.shape[:2], time)
        index, self._count, self._time = self._count, self._count + 1, time
        self._pending.append(PendingFrame(index, time))
        descriptor = describe_frame(frame)
        facts = frame_facts(frame, descriptor)
        for number, finding in self._rules.push(index, time, facts, concealed):
            for pending in self._pending_between(finding.first, finding.last):
                pending.findings[number] = finding.kind, finding.strength
        if self._network is not None:
            self._add_prediction(index, self._network.push(descriptor))
        return self._release(self.lookahead)

    def flush(self) -> list[Verdict]:
        """Return the verdicts of the last frames; what is pushed afterwards begins anew."""
        verdicts = self._release(0)
        self._begin()
        return verdicts

    def _next_time(self) -> float:
        return self._time + self._interval if self._count else 0.0

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
        self._alarm = NetworkAlarm(self.lookahead)

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


def _check_time(time: float) -> float:
    value = float(time)
    if not math.isfinite(value):
        raise BadValue(f"the time of a frame must be a finite number of seconds, got {time!r}", fault="F144")
    return value
