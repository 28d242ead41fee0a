"""Steps of what is lost of the clean score, by which squares are coloured in report, leaderboard and viewer."""

from __future__ import annotations

# Shares of the clean score that are lost, at which the colour of a square steps on: the same on every page, so that
# two pages can be compared.
STEPS = (0.02, 0.05, 0.10, 0.20, 0.30, 0.45, 0.60, 0.80)


def step_of(relative: float | None) -> str:
    """The class of a square by what is left of the clean score.

    >>> step_of(1.0), step_of(0.97), step_of(0.1), step_of(1.05), step_of(None)
    ('h0', 'h1', 'h8', 'above', 'none')
    """
    if relative is None:
        return "none"
    if relative > 1 + STEPS[0]:
        return "above"
    return f"h{sum(1 - relative >= edge for edge in STEPS)}"
