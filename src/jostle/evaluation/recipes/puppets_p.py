"""Recognition and frame stability on the embedded data set, without a download."""

from __future__ import annotations

from jostle.evaluation.recipes.recipe import Group, benchmark, profile_names
from jostle.evaluation.recipes.sampling import Sampling

SEVERITIES = (1, 3, 5)
_P, _C = "ucf101-p", "kinetics-c"


@benchmark(
    "puppets-p",
    version=1,
    task="recognition",
    metric="top_k_accuracy",
    k=1,
    dataset="puppets-trimmed",
    subset="test",
    sampling=Sampling(spread="even"),
    items=400,
    cites=("schiappa2023", "yi2021"),
    notes=(
        "The data set is jostle's; names and values are those of UCF101-P and Mini Kinetics-C.",
        "Some actions are others backwards in time, so that the order of frames is worth something.",
        "Frames are 112 pixels high, so blur of a fixed radius has a stronger effect than on the papers' 224.",
    ),
)
def puppets_p() -> tuple[Group, ...]:
    """Recognition on clips of puppets under 16 corruptions at three severities: no download, minutes on a laptop."""
    families = {
        "noise": profile_names(_P, "gaussian_noise", "shot_noise"),
        "blur": (*profile_names(_P, "defocus_blur"), *profile_names(_C, "motion_blur")),
        "weather": profile_names(_C, "rain", "fog", "contrast"),
        "digital": (*profile_names(_P, "jpeg_compression"), *profile_names(_C, "h265_crf", "bit_error", "packet_loss")),
        "temporal": profile_names(_P, "sampling", "reverse_sampling", "jumble", "freeze"),
        "camera": profile_names(_P, "rotate"),
    }
    return tuple(Group(name, corruptions=names, severities=SEVERITIES) for name, names in families.items())


@benchmark(
    "puppets-frames",
    version=1,
    task="frames",
    metric="pm_k",
    k=10,
    labels_of="own",
    dataset="puppets-frames",
    subset="test",
    cites=("shankar2021",),
    notes=("The data set is jostle's; a stated measure decides which frames look alike, and people did not.",),
)
def puppets_frames() -> tuple[Group, ...]:
    """Stability of a frame classifier that says which prop a puppet holds, on frames that look alike."""
    return ()


@benchmark(
    "puppets-boxes",
    version=1,
    task="objects",
    metric="pm_k_map",
    k=10,
    dataset="puppets-boxes",
    subset="test",
    cites=("shankar2021",),
    notes=("The data set is jostle's; boxes are drawn exactly, and a stated measure decides which frames look alike.",),
)
def puppets_boxes() -> tuple[Group, ...]:
    """Stability of an object detector that finds puppets and their props, on frames that look alike."""
    return ()
