"""UCF101-P and its sisters (Schiappa et al., 2023): 18 kinds of perturbation, five severities each.

Three published programs disagree; docs/differences.md says which reading each line follows.
"""

from __future__ import annotations

from jostle.corruptions.engine.spec import Entry, profile, strength


@profile("ucf101-p", cites="schiappa2023")
def ucf101_p() -> dict[str, Entry]:
    """The 18 kinds behind the 90 perturbations of HMDB51-P, UCF101-P, Kinetics400-P and SSv2-P."""
    return {
        "gaussian_noise": strength("gaussian_noise", 0.08, 0.12, 0.18, 0.26, 0.38),
        "shot_noise": strength("shot_noise", 250, 100, 50, 30, 15),
        "impulse_noise": strength("impulse_noise", 0.03, 0.06, 0.09, 0.17, 0.27),
        "speckle_noise": strength("speckle_noise", 0.15, 0.2, 0.25, 0.3, 0.35),
        "zoom_blur": strength(
            "zoom_blur", (1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03), trim=True
        ),
        "motion_blur": strength("motion_blur", (10, 3), (15, 5), (15, 8), (15, 12), (20, 15), over_time="redrawn"),
        "defocus_blur": strength("defocus_blur", (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5), fair=False),
        "jpeg_compression": strength("jpeg_compression", 25, 18, 15, 10, 7),
        "mpeg1": strength(
            "mpeg2", 20, 31, 31, 31, 31, note="MPEG-2 in truth; the quantiser asked for, 20 to 100, ends at 31"
        ),
        "mpeg2": strength(
            "mpeg4", 15, 30, 31, 31, 31, note="MPEG-4 part 2 in truth; the quantiser asked for, 15 to 75, ends at 31"
        ),
        "sampling": strength("sampling", 2, 4, 8, 16, 32, note="each frame is held, so the length stays"),
        "reverse_sampling": strength(
            "reverse_sampling", 2, 4, 8, 16, 32, note="each frame is held, so the length stays"
        ),
        "jumble": strength("jumble", 4, 8, 16, 32, 64, note="the paper's sizes, growing with severity"),
        "box_jumble": strength("box_jumble", 4, 9, 16, 25, 36),
        "freeze": strength(
            "freeze",
            *((0.4, 1), (0.2, 1), (0.1, 1), (0.05, 2), (0.0, 1)),
            note="the first frame is always shown, so the length stays",
        ),
        "static_rotate": strength("static_rotate", 7.5, 15.0, 30.0, 45.0, 90.0),
        "rotate": strength("rotate", 7, 13, 19, 25, 31, over_time="redrawn"),
        "translate": strength(
            "translate", 8, 16, 24, 32, 40, over_time="redrawn", note="moves in time, as the paper says; size is kept"
        ),
    }
