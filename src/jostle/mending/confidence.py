"""Confidence of verdicts on a stream: the share of such verdicts that were right on footage with known damage.

`studies/watching_calibration.py` measured the shares, on 55,000 frames of clean and damaged clips that no result is
measured on. 15 % of these frames were damaged: where damage is rarer, more of the alarms are false.
"""

from __future__ import annotations

from bisect import bisect_right

RULES = {  # of the kinds of damage that rules find
    "black": 0.99,
    "one_colour": 0.99,
    "frozen": 0.99,
    "covered": 0.99,
    "blurred": 0.99,
    "noisy": 0.9,
    "blocky": 0.99,
    "overexposed": 0.99,
    "underexposed": 0.94,
    "colour_cast": 0.99,
    "missing_part": 0.99,
    "out_of_order": 0.71,
}
DECODER_REPORT = 0.75  # of damage that a decoder reports, on 886 frames; the others differ too little to be seen
NETWORK = 0.45  # of damage that only the network sees, as it was when 4 of 5 frames sufficed: too few are left
DOUBTS = (0.1, 0.3, 0.5, 0.8, 0.95, 0.99)  # probabilities of damage, by the network, between which
CLEAN = (0.98, 0.96, 0.96, 0.96, 0.96, 0.96, 0.96)  # a clean verdict has these


def damage_confidence(kind: str, *, by_rule: bool) -> float:
    """Return the confidence that a frame is damaged, which a rule or the network says."""
    return RULES[kind] if by_rule else NETWORK


def clean_confidence(doubt: float) -> float:
    """Return the confidence that a frame is clean, by the probability of damage that the network sees."""
    return CLEAN[bisect_right(DOUBTS, doubt)]
