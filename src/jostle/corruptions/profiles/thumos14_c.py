"""THUMOS14-C (Zeng et al., 2024): fixed strength; severity is the share of each action that is hit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.corruptions.engine.spec import Entry, profile

SHARES = ("centre:1%", "centre:5%", "centre:10%")
# The names the released program uses in its configuration.
CODE_NAMES = {
    "mask": "black_frame",
    "light": "overexposure",
    "cover": "occlusion",
    "cutout": "packet_loss",
    "random_corrupt": "mix_spatial",
    "random_corrupt_split": "mix_temporal",
}
FITTED = 1 / 1.1  # the hand, as a share of what fits the frame
TRAIL = (20, 15)


def _table(*, added: int, blocks: int, **options: Mapping[str, Any]) -> dict[str, Entry]:
    mixed = (added, TRAIL, FITTED, blocks)
    five = {**options, "kinds": ("black_frame", "motion_blur", "overexposure", "occlusion", "block_loss")}
    return {
        "black_frame": _fixed("black_frame", 0),
        "motion_blur": _fixed("motion_blur", TRAIL, options["motion_blur"]),
        "overexposure": _fixed("overexposure", added, options["overexposure"]),
        "occlusion": _fixed("occlusion", FITTED, options["occlusion"], note="the hand is drawn by jostle"),
        "packet_loss": _fixed("block_loss", blocks, options["block_loss"]),
        "jittering": _fixed("jittering", 0.03, note="no parameters are published"),
        "frame_rate": _fixed("frame_rate", 5.0, note="no parameters are published"),
        "slow_motion": _fixed("slow_motion", 2.0, note="no parameters are published"),
        "time_lapse": _fixed("time_lapse", 2.0, note="no parameters are published"),
        "mix_spatial": _fixed("mix_spatial", mixed, five),
        "mix_temporal": _fixed("mix_temporal", mixed, five),
    }


def _fixed(corruption: str, value: Any, options: Mapping[str, Any] | None = None, note: str = "") -> Entry:
    return Entry(corruption, (value,) * len(SHARES), dict(options or {}), SHARES, note)


@profile("thumos14-c", cites="zeng2024", severity="share", code_names=CODE_NAMES)
def thumos14_c() -> dict[str, Entry]:
    """One strength for every extractor: the I3D program's; blocks and strips grow with the frame. Mended."""
    return _table(
        added=100,
        blocks=2000,
        overexposure={},
        motion_blur={"over_time": "redrawn"},
        occlusion={"moving": False, "median": 7},
        block_loss={},
    )


@profile("thumos14-c-i3d", cites="zeng2024", severity="share", code_names=CODE_NAMES)
def thumos14_c_i3d() -> dict[str, Entry]:
    """The strength of the released I3D program, in pixels of the frame it is given."""
    return _table(
        added=100,
        blocks=2000,
        overexposure={"stretch": True},
        motion_blur={"over_time": "redrawn", "jpeg": 95},
        occlusion={"moving": False, "median": 7, "swapped": True},
        block_loss={"scaled": False},
    )


@profile("thumos14-c-videomae", cites="zeng2024", severity="share", code_names=CODE_NAMES)
def thumos14_c_videomae() -> dict[str, Entry]:
    """The strength of the released VideoMAEv2 program, in pixels of the frame it is given."""
    return _table(
        added=180,
        blocks=1400,
        overexposure={},
        motion_blur={"over_time": "redrawn", "jpeg": 95},
        occlusion={"moving": False, "median": 7, "swapped": True},
        block_loss={"scaled": False},
    )
