"""A benchmark: the puppets of short clips behind an old screen."""

from __future__ import annotations

from jostle.extend import Group, benchmark


@benchmark(
    "scanlines-p",
    title="Puppets behind an old screen",
    version=1,
    dataset="puppets-trimmed",
    subset="test",
    task="recognition",
    metric="balanced_accuracy",
    k=1,
    cites=("jostle",),
)
def scanlines_p() -> tuple[Group, ...]:
    """Recognition under scan lines, everywhere and in the second half alone."""
    return (
        Group("lines", corruptions=("scan_lines",), severities=(3, 5)),
        Group("late", cells=("scan_lines:5",), placements=("halves:2",)),
    )
