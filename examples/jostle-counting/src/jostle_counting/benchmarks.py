"""A benchmark: flashes counted in damaged films."""

from __future__ import annotations

from jostle.extend import Group, benchmark


@benchmark(
    "flashes-c",
    title="Flashes-C",
    version=1,
    dataset="flashes",
    subset="test",
    task="counting",
    metric="exact_count",
    cites=("jostle",),
)
def flashes_c() -> tuple[Group, ...]:
    """Counting under noise, fog and lost pictures."""
    return (
        Group("noise", corruptions=("gaussian_noise",), severities=(1, 5)),
        Group("light", corruptions=("brightness",), severities=(3, 5)),
        Group("lost", cells=("thumos14-c/black_frame:3",)),
    )
