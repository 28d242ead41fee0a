"""Mini Kinetics-C and Mini SSv2-C (Yi et al., 2021): twelve corruptions, six in space and six in time."""

from __future__ import annotations

from functools import partial

from jostle.evaluation.recipes.recipe import Group, benchmark, profile_names
from jostle.evaluation.recipes.sampling import Sampling

SPATIAL = ("shot_noise", "rain", "fog", "contrast", "brightness", "saturate")
TEMPORAL = ("motion_blur", "frame_rate", "h265_abr", "h265_crf", "bit_error", "packet_loss")

_NOTES = (
    "The original corrupts crops of 224 by 224 and stores them as JPEG of quality 80; here whole frames are corrupted "
    "and nothing is stored in between. Codecs work on the whole file in both.",
    "The original drops the first and the last frame of every video; here they are kept.",
    "The beginning of the clip is drawn anew in every test of the original; here it is drawn once a video.",
    "H.264 stands in the program and not in the paper: it is run beside the twelve.",
)
_recognition = partial(
    benchmark,
    version=1,
    task="recognition",
    metric="top_k_accuracy",
    k=1,
    sampling=Sampling(frames=32, spread="drawn", short_side=256, size=224),
    cites=("yi2021",),
)


def _groups(profile: str) -> tuple[Group, ...]:
    return (
        Group("spatial", corruptions=profile_names(profile, *SPATIAL)),
        Group("temporal", corruptions=profile_names(profile, *TEMPORAL)),
        Group("h264", corruptions=profile_names(profile, "h264_abr", "h264_crf"), beside=True),
    )


@_recognition(
    "kinetics-c",
    title="Mini Kinetics-C",
    dataset="mini-kinetics200",
    subset="validation",
    items=9918,
    notes=("The published list holds 19,849 videos of 400 classes; 9,918 are of the 200.", *_NOTES),
)
def kinetics_c() -> tuple[Group, ...]:
    """Recognition on the 200 classes of Mini Kinetics under twelve corruptions at five severities."""
    return _groups("kinetics-c")


@_recognition(
    "ssv2-c",
    title="Mini SSv2-C",
    dataset="mini-ssv2",
    subset="validation",
    items=13157,
    notes=(
        "Six of the eight means printed for this set are not the means of their rows.",
        "TimeSformer saw 16 frames by the program and 32 by the paper.",
        *_NOTES,
    ),
)
def ssv2_c() -> tuple[Group, ...]:
    """Recognition on 87 classes of Something-Something v2 under twelve corruptions at five severities."""
    return _groups("ssv2-c")
