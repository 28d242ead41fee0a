"""ImageNet-C (Hendrycks and Dietterich, 2019), for any frame size as `imagecorruptions` has it."""

from __future__ import annotations

from jostle.corruptions.engine.spec import Entry, profile, strength


@profile("imagenet-c", cites="hendrycks2019")
def imagenet_c() -> dict[str, Entry]:
    """The 19 image corruptions of ImageNet-C, drawn anew for every frame."""
    return {
        "gaussian_noise": strength("gaussian_noise", 0.08, 0.12, 0.18, 0.26, 0.38),
        "shot_noise": strength("shot_noise", 60, 25, 12, 5, 3),
        "impulse_noise": strength("impulse_noise", 0.03, 0.06, 0.09, 0.17, 0.27),
        "speckle_noise": strength("speckle_noise", 0.15, 0.2, 0.35, 0.45, 0.6),
        "defocus_blur": strength("defocus_blur", (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5), fair=False),
        "glass_blur": strength(
            "glass_blur", (0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2), over_time="redrawn"
        ),
        "motion_blur": strength(
            "motion_blur",
            *((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
            over_time="redrawn",
            note="on a frame smaller than the trail the edge is repeated; the original stops adding and darkens",
        ),
        "zoom_blur": strength("zoom_blur", (1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        "gaussian_blur": strength("gaussian_blur", 1.0, 2.0, 3.0, 4.0, 6.0),
        "snow": strength(
            "snow",
            (0.1, 0.3, 3.0, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2.0, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4.0, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
            over_time="redrawn",
        ),
        "frost": strength(
            "frost",
            *((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
            over_time="redrawn",
            note="ice textures are drawn by jostle; the published ones are photographs",
        ),
        "fog": strength("fog", (1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4), over_time="redrawn"),
        "brightness": strength("brightness", 0.1, 0.2, 0.3, 0.4, 0.5),
        "contrast": strength("contrast", 0.4, 0.3, 0.2, 0.1, 0.05),
        "elastic_transform": strength(
            "elastic_transform",
            *(12.5, 16.25, 21.25, 25.0, 30.0),
            over_time="redrawn",
            note="as imagecorruptions; the first ImageNet-C generator adds a random affine jitter",
        ),
        "pixelate": strength("pixelate", 0.6, 0.5, 0.4, 0.3, 0.25),
        "jpeg_compression": strength("jpeg_compression", 25, 18, 15, 10, 7),
        "spatter": strength(
            "spatter",
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
            over_time="redrawn",
        ),
        "saturate": strength("saturate", (0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
    }
