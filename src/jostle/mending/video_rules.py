"""Damage that the plain rules find in a whole video, in any corrupted state of it.

The rules go through the clean video once. In a state they go on from a checkpoint before the first frame that differs,
until they know of the past what they knew in the clean video, so that a state has the same findings as if it were
judged alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.mending.frame_facts import FrameFacts, Mask
from jostle.mending.rule_set import RuleFinding, RuleSet
from jostle.mending.stream_rules import Finding

CHECKPOINT = 16  # frames between two copies of the rules
MEMORY = 64  # frames after a difference before which the rules still know of it
# Kinds that are not mended: frames that repeat or are exchanged are whole, and things that swing are taken for them.
UNMENDED = ("out_of_order",)
# Kinds that are found by comparison with frames before; others show in the frame itself, or in all that follow.
COMPARED = ("covered", "blurred", "noisy", "blocky", "overexposed", "underexposed", "colour_cast")
RETURN = 2  # frames after the end of damage in which the picture comes back

Indices = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.str_]  # (T,) of `jostle.mending.verdicts.KINDS`


class FindingLog:
    """Findings of the rules in a whole video."""

    def __init__(self) -> None:
        self._findings: dict[int, list[Finding]] = {}

    def add(self, findings: Sequence[RuleFinding]) -> None:
        """Add what one frame showed."""
        for number, finding in findings:
            own = self._findings.setdefault(number, [])
            if own and (own[-1].first, own[-1].kind) == (finding.first, finding.kind):
                own[-1] = finding  # the same goes on
            else:
                own.append(finding)

    def kinds(self, count: int) -> Kinds:
        """Return the kind of each frame: the strongest that a rule found, or `clean`."""
        kinds, strengths = np.full(count, "clean", "<U12"), np.zeros(count)
        for _, findings in sorted(self._findings.items()):
            own_kinds, own_strengths = np.full(count, "clean", "<U12"), np.zeros(count)
            for finding in findings:
                span = slice(max(finding.first, 0), finding.last + 1)
                own_kinds[span] = finding.kind
                own_strengths[span] = finding.strength if finding.kind != "clean" else 0.0
            stronger = own_strengths > strengths
            kinds[stronger], strengths[stronger] = own_kinds[stronger], own_strengths[stronger]
        return kinds


class VideoRules:
    """Kinds of damage that rules find in the frames of a video, in any state of it.

    Args:
        facts: of the clean video, to which states are compared.
        times: of its frames, in seconds.
        concealed: (T,) which of them show what a decoder concealed; default: none.

    Attributes:
        kinds: (T,) of the clean video.
    """

    def __init__(self, facts: Sequence[FrameFacts], times: Times, concealed: Mask | None = None) -> None:
        self._facts, self._times = list(facts), times.tolist()
        self._concealed = [False] * len(self._facts) if concealed is None else concealed.tolist()
        self._findings: list[list[RuleFinding]] = []
        self._checkpoints: list[RuleSet] = []
        self._states: dict[int, bytes] = {}
        rules = RuleSet()
        for index, (time, one) in enumerate(zip(self._times, self._facts, strict=True)):
            if index % CHECKPOINT == 0:
                self._checkpoints.append(rules.copy())
            self._findings.append(rules.push(index, time, one, self._concealed[index]))
        self.kinds = _resolve(self._findings)

    def kinds_for(self, came_from: Indices, new_facts: Sequence[FrameFacts]) -> Kinds:
        """Return (T,) the kinds in another state of the video.

        Args:
            came_from: for each frame the index of the clean frame that it equals, or below 0 for a new one.
            new_facts: facts of the new ones, in order.
        """
        new = iter(new_facts)
        facts = [self._facts[origin] if origin >= 0 else next(new) for origin in came_from.tolist()]
        concealed = [origin >= 0 and self._concealed[origin] for origin in came_from.tolist()]
        differing = np.flatnonzero(came_from != np.arange(len(came_from)))
        if not len(differing):
            return self.kinds
        findings, end = list(self._findings), 0
        for first in differing.tolist():
            if first >= end:
                end = self._judge(first, facts, concealed, findings)
        return _resolve(findings)

    def _judge(
        self, first: int, facts: Sequence[FrameFacts], concealed: Sequence[bool], findings: list[list[RuleFinding]]
    ) -> int:
        """Judge from the checkpoint before a frame that differs; return where the rules know no more of it."""
        checkpoint = first // CHECKPOINT
        rules, last = self._checkpoints[checkpoint].copy(), first
        for index in range(checkpoint * CHECKPOINT, len(facts)):
            if index % CHECKPOINT == 0 and index - last > MEMORY and rules.state() == self._state(index // CHECKPOINT):
                return index
            if facts[index] is not self._facts[index]:
                last = index
            findings[index] = rules.push(index, self._times[index], facts[index], concealed[index])
        return len(facts)

    def _state(self, checkpoint: int) -> bytes:
        if checkpoint not in self._states:
            self._states[checkpoint] = self._checkpoints[checkpoint].state()
        return self._states[checkpoint]


def join_kinds(by_rules: Kinds, by_network: Mask, concealed: Mask | None = None) -> Kinds:
    """Return the kind of each frame, by rules and network: `unknown` where the network alone finds damage.

    What a rule finds by comparison right after damage that the network found is the picture that comes back, where the
    rule did not find the damage itself.

    Args:
        concealed: (T,) frames that a decoder says are damaged, which nothing takes back.
    """
    kinds = by_rules.copy()
    kinds[np.isin(kinds, UNMENDED)] = "clean"
    edges = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(kinds)]
    for lo, hi in pairwise(edges if len(kinds) else []):
        if kinds[lo] in COMPARED and by_network[max(lo - RETURN, 0) : lo].any():
            kinds[lo:hi] = "clean"
    if concealed is not None:
        kinds[concealed & (kinds == "clean")] = "blocky"
    kinds[by_network & (kinds == "clean")] = "unknown"
    return kinds


def _resolve(findings: Sequence[Sequence[RuleFinding]]) -> Kinds:
    log = FindingLog()
    for one in findings:
        log.add(one)
    return log.kinds(len(findings))
