"""Group sequential stopping at the limit of a condition: wrong decisions are bounded."""

from __future__ import annotations

import numpy as np

from jostle.gate.evidence import Evidence
from jostle.gate.group_sequential import planned_looks


def test_error_rate_at_the_limit_is_bounded() -> None:
    # The share of detected actions among all actions, which differ in number per video: like mAP, no mean over videos.
    rng = np.random.default_rng(5)
    runs, videos, limit, draws = 1000, 160, 0.6, 1600
    looks = planned_looks(videos)
    level = 1 - 0.05 / len(looks)
    actions = 1 + rng.poisson(5, (runs, videos))
    detected = rng.binomial(actions, np.clip(rng.normal(limit, 0.15, (runs, videos)), 0, 1))
    wrong, decided = {"pass": 0, "fail": 0}, np.zeros(runs, bool)
    for count in looks:
        weights = rng.standard_exponential((count, draws))
        hits, total = detected[:, :count] @ weights, actions[:, :count] @ weights
        unseen = actions[:, :count].max(axis=1)[:, None] * rng.standard_exponential(draws)
        values = detected[:, :count].sum(axis=1) / actions[:, :count].sum(axis=1)
        for run in np.flatnonzero(~decided):
            whole = total[run] + unseen[run]
            ends = hits[run] / whole, (hits[run] + unseen[run]) / whole
            value = float(values[run])
            evidence = Evidence(value, value, None, count, hits[run] / total[run], *ends)
            low, high = evidence.interval(level) or (0.0, 1.0)
            if low >= limit or high < limit:
                wrong["pass" if low >= limit else "fail"] += 1
                decided[run] = True
    assert max(wrong.values()) <= 0.05 * runs, wrong
    assert sum(wrong.values()) > 0  # at the limit itself some decisions must be wrong
