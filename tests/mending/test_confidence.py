"""Confidence of verdicts: fixed for each kind of damage, decreasing with the doubt for clean frames."""

from __future__ import annotations

import numpy as np

from jostle.mending.confidence import CLEAN, DOUBTS, RULES, clean_confidence, damage_confidence
from jostle.mending.stream_repair import SURE
from jostle.mending.verdicts import KINDS


def test_every_kind_that_a_rule_names_has_a_confidence() -> None:
    assert set(RULES) == set(KINDS) - {"clean", "unknown"}
    assert all(0.5 < damage_confidence(kind, by_rule=True) < 1 for kind in RULES)
    assert damage_confidence("unknown", by_rule=False) < min(RULES.values())


def test_confidence_in_clean_frames_falls_with_the_doubt() -> None:
    confidences = [clean_confidence(doubt) for doubt in np.linspace(0, 1, 101)]
    assert confidences == sorted(confidences, reverse=True)
    assert len(CLEAN) == len(DOUBTS) + 1


def test_only_frames_without_doubt_are_held() -> None:
    assert clean_confidence(0.05) >= SURE
    assert clean_confidence(0.2) < SURE
