"""The cells that the study looks at: the 15 of `puppets-c`, and the two studies of single frames."""

from __future__ import annotations

CORRUPTIONS = ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
SHARES = {1: "1 %", 2: "5 %", 3: "10 %"}
PUPPETS_C = tuple(f"thumos14-c/{name}:{level}" for name in CORRUPTIONS for level in SHARES)
POSITIONS = tuple(range(10, 100, 10))

# name: (spec, placement); None for the spec's own.
CELLS: dict[str, tuple[str, str | None]] = {
    **{cell: (cell, None) for cell in PUPPETS_C},
    "one frame": ("thumos14-c/black_frame:1", "at:50%x1"),
    **{f"five at {p} %": ("thumos14-c/black_frame:1", f"at:{p}%x5") for p in POSITIONS},
    "five in the background": ("thumos14-c/black_frame:1", "background:5"),
}
