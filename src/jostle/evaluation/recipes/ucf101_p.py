"""UCF101-P, HMDB51-P, Kinetics400-P and SSv2-P (Schiappa et al., 2023): 18 perturbations, 90 cells."""

from __future__ import annotations

from functools import partial

from jostle.evaluation.recipes.recipe import Group, benchmark, profile_names
from jostle.evaluation.recipes.sampling import Sampling

PROFILE = "ucf101-p"
FAMILIES = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("zoom_blur", "motion_blur", "defocus_blur"),
    "digital": ("jpeg_compression", "mpeg1", "mpeg2"),
    "temporal": ("sampling", "reverse_sampling", "jumble", "box_jumble", "freeze"),
    "camera": ("static_rotate", "rotate", "translate"),
}

_NOTES = (
    "Three published programs disagree on severities; the profile says which reading each line follows.",
    "Frames and stride of a clip are the model's own, as in the paper.",
    "The program for testing perturbs three videos in four and crops at random; here every video is perturbed, and the "
    "centre is shown.",
    "The programs that write files encode everything once more, with loss; here frames go straight to the model.",
)
_recognition = partial(benchmark, version=1, task="recognition", metric="top_k_accuracy", k=1, cites=("schiappa2023",))


def _groups() -> tuple[Group, ...]:
    return tuple(Group(family, corruptions=profile_names(PROFILE, *names)) for family, names in FAMILIES.items())


def _clips(clips: int) -> Sampling:
    return Sampling(clips=clips, size=224)


@_recognition(
    "ucf101-p",
    title="UCF101-P",
    dataset="ucf101",
    subset="test",
    sampling=_clips(5),
    items=3782,
    notes=("3,782 videos are counted, one fewer than the first test split lists.", *_NOTES),
)
def ucf101_p() -> tuple[Group, ...]:
    """Recognition on UCF101 under 18 perturbations at five severities."""
    return _groups()


@_recognition(
    "hmdb51-p",
    title="HMDB51-P",
    dataset="hmdb51",
    subset="test",
    sampling=_clips(5),
    items=1529,
    notes=("1,529 videos are counted, one fewer than the first test split lists.", *_NOTES),
)
def hmdb51_p() -> tuple[Group, ...]:
    """Recognition on HMDB51 under 18 perturbations at five severities."""
    return _groups()


@_recognition(
    "kinetics400-p",
    title="Kinetics400-P",
    dataset="kinetics400",
    subset="validation",
    sampling=_clips(10),
    items=17963,
    notes=("17,963 videos are counted; copies of the set differ, as videos vanish from the web.", *_NOTES),
)
def kinetics400_p() -> tuple[Group, ...]:
    """Recognition on Kinetics-400 under 18 perturbations at five severities."""
    return _groups()


@_recognition(
    "ssv2-p",
    title="SSv2-P",
    dataset="ssv2",
    subset="validation",
    sampling=Sampling(spread="even", size=224),
    items=24777,
    notes=(
        "The printed means are not the means of the five categories.",
        "Frames are said to be sampled uniformly; here each is the middle of its part, in the program the first.",
        *_NOTES,
    ),
)
def ssv2_p() -> tuple[Group, ...]:
    """Recognition on Something-Something v2, where order matters, under 18 perturbations at five severities."""
    return _groups()
