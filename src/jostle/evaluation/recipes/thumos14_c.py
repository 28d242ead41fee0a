"""THUMOS14-C and its sisters (Zeng et al., 2024): five corruptions in the middle of each action, at three shares."""

from __future__ import annotations

from functools import partial

from jostle.evaluation.recipes.recipe import Group, benchmark, profile_names
from jostle.metrics.protocol import thresholds

PROFILE = "thumos14-c"
# In the order of the paper's tables.
CORRUPTIONS = ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
MIXES = ("mix_spatial", "mix_temporal")
EXTRA = ("jittering", "frame_rate", "slow_motion", "time_lapse")
POSITIONS = tuple(range(10, 100, 10))  # percent of an action

_UNSAID = (
    "No strength is printed; the profile says whose it is.",
    "The extra four and the mixes are described in a sentence each; their parameters are jostle's.",
    "No seed, and no variance over seeds, is given.",
)
_detection = partial(benchmark, version=1, task="detection", metric="mean_ap", cites=("zeng2024",))


def _groups(*more: Group) -> tuple[Group, ...]:
    black = (f"{PROFILE}/black_frame:1",)
    return (
        Group("main", corruptions=profile_names(PROFILE, *CORRUPTIONS)),
        Group("one-frame", cells=black, placements=("at:50%x1",), beside=True),
        Group("position", cells=black, placements=tuple(f"at:{p}%x5" for p in POSITIONS), beside=True),
        Group("mixes", corruptions=profile_names(PROFILE, *MIXES), beside=True),
        Group("extra", corruptions=profile_names(PROFILE, *EXTRA), beside=True),
        *more,
    )


@_detection(
    "thumos14-c",
    title="THUMOS14-C",
    dataset="thumos14",
    subset="test",
    protocol="thumos14",
    tious=(0.5,),
    items=213,
    notes=(
        "213 videos are counted; one of them, video_test_0001292, has no annotated action, and files list 212.",
        "Thresholds from 0.1 to 0.5 are listed, the program has 0.3 to 0.7, and the tables show 0.5.",
        *_UNSAID,
    ),
)
def thumos14_c() -> tuple[Group, ...]:
    """Detection on THUMOS14 with the central 1, 5 and 10 % of each action corrupted."""
    return _groups()


@_detection(
    "activitynet-c",
    title="ActivityNet-v1.3-C",
    dataset="activitynet",
    subset="validation",
    protocol="activitynet",
    rounding="activitynet",
    notes=(
        "The rule of rounding leaves short actions without a corrupted frame: about one in ten at 1 %.",
        "The frame rate that the frames were chosen at is not given; here it is the video's own.",
        "One frame, positions, mixes and the extra four are only reported for THUMOS14.",
        "With TSP features every corruption costs as much as any other, already at 1 %: the clean features were "
        "probably extracted in another way.",
        *_UNSAID,
    ),
)
def activitynet_c() -> tuple[Group, ...]:
    """Detection on ActivityNet 1.3 with the central 1, 5 and 10 % of each action corrupted, rounded by its own rule."""
    return _groups()


@_detection(
    "multithumos-c",
    title="MultiTHUMOS-C",
    dataset="multithumos",
    subset="test",
    protocol="thumos14",
    tious=thresholds(0.1, 0.9, 9),
    notes=(
        "No program is published; frames are chosen as for THUMOS14, around each of the many labels.",
        "One frame, positions, mixes and the extra four are only reported for THUMOS14.",
        *_UNSAID,
    ),
)
def multithumos_c() -> tuple[Group, ...]:
    """Detection on MultiTHUMOS, where actions overlap, with the central 1, 5 and 10 % of each corrupted."""
    return _groups()


@_detection(
    "puppets-c",
    dataset="puppets",
    subset="test",
    protocol="thumos14",
    tious=(0.5,),
    items=60,
    notes=("The data set is jostle's; corruptions, placements and scoring are those of THUMOS14-C.",),
)
def puppets_c() -> tuple[Group, ...]:
    """THUMOS14-C on the embedded data set: no download, minutes on a laptop."""
    background = Group(
        "background", cells=(f"{PROFILE}/black_frame:1",), placements=("background:5",), beside=True
    )  # measures the effect of frames outside the actions
    return _groups(background)
