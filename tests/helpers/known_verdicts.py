"""Streams whose verdicts a test knows."""

from __future__ import annotations

from jostle.mending.stream import PendingFrame
from jostle.mending.verdicts import Verdict


class KnownFrame(PendingFrame):
    """Frame whose verdict is known, and comes when it is due."""

    def __init__(self, index: int, time: float, damaged: bool, confidence: float) -> None:
        super().__init__(index, time)
        self._verdict = Verdict(index, time, damaged, confidence, "black" if damaged else "clean")

    def verdict(self) -> Verdict:
        return self._verdict
