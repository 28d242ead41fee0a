"""All plain rules on one stream: which of them sees a frame, and when they begin anew."""

from __future__ import annotations

import copy
import io
import pickle
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from jostle.mending.block_rules import BlockRule
from jostle.mending.cover_rules import CoverRule
from jostle.mending.frame_facts import FrameFacts
from jostle.mending.part_rules import MissingPartRule
from jostle.mending.step_rules import StepRule
from jostle.mending.stream_rules import Finding, FrozenRule, OneColourRule, OrderRule, Rule

GAP_SECONDS = 1.0  # between two frames, from which they are not compared with each other
WHOLE_RULES = 3  # rules that judge what a frame shows; those after them compare it with clean frames before

DECODER, CONCEALED = -1, 0.1  # number and strength of what a decoder says: a rule that sees more names the kind

RuleFinding = tuple[int, Finding]  # with the number of the rule


class RuleSet:
    """The plain rules of a stream.

    No rule compares frames with one that another rule takes for damaged. After a gap in time, or a time that goes back,
    they begin anew; a freeze and a black picture are followed across a gap.
    """

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._time: float | None = None
        self.restart()

    def restart(self) -> None:
        """Forget all frames that were pushed before."""
        self._rules = [OneColourRule(), FrozenRule(), MissingPartRule(), *_comparing_rules()]
        self._time = None

    def push(self, index: int, time: float, facts: FrameFacts, concealed: bool = False) -> list[RuleFinding]:
        """Add a frame and return what it shows.

        Args:
            concealed: whether its decoder says that it shows what was concealed: damage, whatever it looks like.
        """
        self.follow(time)
        findings = self._apply(range(WHOLE_RULES), index, time, facts)
        if concealed:
            findings.append((DECODER, Finding(index, index, "blocky", CONCEALED)))
        if not _numbers_of_damage(findings):
            findings += self._apply(range(WHOLE_RULES, len(self._rules)), index, time, facts)
        found = _numbers_of_damage(findings)
        if found:
            for number, rule in enumerate(_comparing_rules(), WHOLE_RULES):
                if number not in found:
                    self._rules[number] = rule
        return findings

    def copy(self) -> RuleSet:
        """Return a copy that goes its own way from here."""
        twin = RuleSet()
        twin._rules, twin._time = [_copy_rule(rule) for rule in self._rules], self._time
        return twin

    def state(self) -> bytes:
        """Return what later findings depend on: sets with equal states find the same in the same frames."""
        buffer = io.BytesIO()
        pickler = _StatePickler(buffer)
        pickler.fast = True  # values alone count, not whether they are one object
        pickler.dump((self._time, [vars(rule) for rule in self._rules]))
        return buffer.getvalue()

    def follow(self, time: float) -> bool:
        """Go on to the time of the next frame, which `push` does as well.

        Returns:
            whether they begin anew, since the frame cannot be compared with the one before.
        """
        went_back = self._time is not None and time < self._time
        gap = self._time is not None and time - self._time > GAP_SECONDS
        if went_back or gap:
            kept = [rule for rule in self._rules if gap and isinstance(rule, (OneColourRule, FrozenRule))]
            self.restart()
            self._rules[: len(kept)] = kept
        self._time = time
        return went_back or gap

    def _apply(self, numbers: Iterable[int], index: int, time: float, facts: FrameFacts) -> list[RuleFinding]:
        return [(number, one) for number in numbers for one in self._rules[number].push(index, time, facts)]


class _StatePickler(pickle.Pickler):
    """Pickler that writes frames by identity."""

    def persistent_id(self, obj: object) -> int | None:
        return id(obj) if isinstance(obj, FrameFacts) else None


def _copy_rule(rule: Rule) -> Rule:
    """Return a copy of a rule with its own containers; what they contain never changes."""
    twin = copy.copy(rule)
    for name, value in vars(rule).items():
        if isinstance(value, (deque, np.ndarray)):
            setattr(twin, name, value.copy())
    return twin


def _comparing_rules() -> list[Rule]:
    """Return new rules that compare frames: the end of a freeze or of a black picture is no change of the scene."""
    return [OrderRule(), StepRule(), CoverRule(), BlockRule()]


def _numbers_of_damage(findings: Sequence[RuleFinding]) -> set[int]:
    """Return the numbers of the rules that found damage."""
    return {number for number, finding in findings if finding.kind != "clean"}
