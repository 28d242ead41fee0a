"""Input sizes of the networks of papers that are small enough for a test."""

from __future__ import annotations

SMALL: dict[str, dict[str, int]] = {
    **{name: {"frames": 4, "size": 64} for name in ("slow_r50", "i3d_r50", "c2d_r50", "r2plus1d_r50", "x3d_xs")},
    **{name: {"frames": 4, "size": 64} for name in ("i3d_resnet18", "s3d_resnet18", "tam_resnet18", "tam_resnet50")},
    **{name: {"frames": 8, "size": 64} for name in ("slowfast_r50", "i3d_inception", "s3d_inception")},
    "mvit_base_16x4": {"frames": 4, "size": 32},
}
