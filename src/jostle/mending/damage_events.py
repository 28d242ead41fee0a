"""Events of a stream: where damage begins and ends, and of which kind it was."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jostle.mending.verdicts import Verdict

Event = dict[str, Any]


class DamageEvents:
    """Turns the verdicts on a stream into events, plain values for JSON.

    `start` has the kind, frame, time and confidence of the first damaged frame. `end` has the first clean frame, the
    kind that most frames had and their mean confidence, and besides the number of damaged `frames`, the `seconds` that
    they lasted, and the `first_frame`.
    """

    def __init__(self) -> None:
        self._run: _Run | None = None
        self._time: float | None = None
        self._step = 0.0  # seconds between the last two frames

    @property
    def kind(self) -> str | None:
        """Kind of the damage that goes on, None while the stream is clean."""
        return None if self._run is None else self._run.kind

    def push(self, verdict: Verdict) -> list[Event]:
        """Return the events that a verdict makes: none, or one."""
        self._step = 0.0 if self._time is None else max(verdict.time - self._time, 0.0)
        self._time = verdict.time
        if verdict.damaged and self._run is None:
            self._run = _Run(verdict)
            return [_event("start", verdict.kind, verdict.index, verdict.time, verdict.confidence)]
        if verdict.damaged and self._run is not None:
            self._run.add(verdict)
            return []
        return self._end(verdict.index, verdict.time)

    def flush(self) -> list[Event]:
        """Return the end of damage that lasts until the stream ends."""
        if self._run is None:
            return []
        return [event | {"stream_ended": True} for event in self._end(self._run.last + 1, self._run.time + self._step)]

    def _end(self, frame: int, time: float) -> list[Event]:
        if self._run is None:
            return []
        run, self._run = self._run, None
        confidence = run.confidences / run.frames
        event = _event("end", run.kind, frame, time, confidence)
        return [event | {"first_frame": run.first, "frames": run.frames, "seconds": round(max(time - run.begin, 0), 6)}]


class _Run:
    """Damaged frames one after another."""

    def __init__(self, verdict: Verdict) -> None:
        self.first, self.begin = verdict.index, verdict.time
        self.frames, self.confidences = 0, 0.0
        self._kinds: Counter[str] = Counter()
        self.add(verdict)

    @property
    def kind(self) -> str:
        return self._kinds.most_common(1)[0][0]

    def add(self, verdict: Verdict) -> None:
        self.last, self.time = verdict.index, verdict.time
        self.frames += 1
        self.confidences += verdict.confidence
        self._kinds[verdict.kind] += 1


def _event(event: str, kind: str, frame: int, time: float, confidence: float) -> Event:
    return {
        "event": event,
        "kind": kind,
        "frame": frame,
        "time": round(time, 6),
        "confidence": round(confidence, 4),
    }
