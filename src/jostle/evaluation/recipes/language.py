"""Questions and moments in words under corruptions of three papers: of pictures, of order, and of single moments.

The data sets are their authors', the corruptions those of Mini Kinetics-C, UCF101-P and THUMOS14-C; that the two are
put together is jostle's.
"""

from __future__ import annotations

from functools import partial

from jostle.evaluation.recipes.recipe import Group, benchmark, profile_names

SEVERITIES = (1, 3, 5)
PICTURES = ("shot_noise", "rain", "fog", "contrast", "brightness", "saturate", "motion_blur", "frame_rate", "h265_abr",
            "h265_crf", "bit_error", "packet_loss")  # fmt: skip
ORDER = ("jumble", "box_jumble", "reverse_sampling", "freeze")
MOMENT = ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
POSITIONS = (10, 30, 50, 70, 90)  # percent of a moment
_NOTES = (
    "The data set is its authors'; that it is corrupted, and how, is jostle's: there are no published figures.",
    "box_jumble and reverse_sampling destroy the order of events; temporal sensitivity is measured in their cells.",
)
_RECALL = "The value of a cell is R@1 at an overlap of 0.5."
_questions = partial(
    benchmark,
    version=1,
    task="questions",
    metric="answer_accuracy",
    cites=("yang2026", "yi2021", "schiappa2023", "zeng2024"),
)
_moments = partial(benchmark, version=1, task="moments", cites=("zeng2024", "lei2021"))


def _question_groups() -> tuple[Group, ...]:
    return (
        Group("pictures", corruptions=profile_names("kinetics-c", *PICTURES), severities=SEVERITIES),
        Group("order", corruptions=profile_names("ucf101-p", *ORDER), severities=SEVERITIES),
        Group("centre", corruptions=profile_names("thumos14-c", *MOMENT)),
    )


def _moment_groups() -> tuple[Group, ...]:
    black = ("thumos14-c/black_frame:1",)
    return (
        Group("centre", corruptions=profile_names("thumos14-c", *MOMENT)),
        Group("one-frame", cells=black, placements=("at:50%x1",), beside=True),
        Group("position", cells=black, placements=tuple(f"at:{p}%x5" for p in POSITIONS), beside=True),
        Group("pictures", corruptions=profile_names("kinetics-c", *PICTURES), severities=(3,), beside=True),
        Group("background", cells=black, placements=("background:5",), beside=True),
    )


@_questions("mvbench-c", title="MVBench-C", dataset="mvbench", subset="test", items=4000, notes=_NOTES)
def mvbench_c() -> tuple[Group, ...]:
    """Twenty types of questions about short videos under 20 corruptions."""
    return _question_groups()


@_questions("video-mme-c", title="Video-MME-C", dataset="video-mme", subset="test", items=900, notes=_NOTES)
def video_mme_c() -> tuple[Group, ...]:
    """Questions about videos of seconds to an hour under 20 corruptions."""
    return _question_groups()


@_questions("next-qa-c", title="NExT-QA-C", dataset="next-qa", subset="validation", items=570, notes=_NOTES)
def next_qa_c() -> tuple[Group, ...]:
    """Causal, temporal and descriptive questions under 20 corruptions."""
    return _question_groups()


@_questions(
    "tempcompass-c", title="TempCompass-C", dataset="tempcompass", subset="multi-choice", items=410, notes=_NOTES
)
def tempcompass_c() -> tuple[Group, ...]:
    """Questions of action, direction, speed, order and change of attributes under 20 corruptions."""
    return _question_groups()


@_questions(
    "puppets-questions-c",
    dataset="puppets-questions",
    subset="test",
    notes=(
        "The data set is jostle's, made from the scripts of films: which questions need order is known exactly.",
        "Films have 40 to 90 seconds at 24 frames a second, and frames of 112 by 112 pixels.",
    ),
)
def puppets_questions_c() -> tuple[Group, ...]:
    """Questions about films of puppets under 15 cells: what, how often, in which order, who, where; no download."""
    return (
        Group("pictures", corruptions=profile_names("kinetics-c", "shot_noise", "motion_blur", "h265_crf"),
              severities=(3, 5)),
        Group("order", corruptions=profile_names("ucf101-p", "box_jumble", "reverse_sampling", "freeze"),
              severities=(3,)),
        Group("centre", corruptions=profile_names("thumos14-c", "black_frame", "occlusion")),
    )  # fmt: skip


@_moments(
    "charades-sta-c", title="Charades-STA-C", dataset="charades-sta", subset="test", metric="moment_recall", items=1334,
    notes=(_NOTES[0], _RECALL),
)  # fmt: skip
def charades_sta_c() -> tuple[Group, ...]:
    """Sentences found in Charades with the central 1, 5 and 10 % of each moment corrupted."""
    return _moment_groups()


@_moments(
    "qvhighlights-c", title="QVHighlights-C", dataset="qvhighlights", subset="validation", metric="moment_map",
    items=1519, notes=(_NOTES[0], "The value of a cell is the mean AP at overlaps of 0.5 to 0.95."),
)  # fmt: skip
def qvhighlights_c() -> tuple[Group, ...]:
    """Sentences found in QVHighlights with the central 1, 5 and 10 % of each moment corrupted."""
    return _moment_groups()


@_moments(
    "puppets-moments-c",
    dataset="puppets-moments",
    subset="test",
    metric="moment_recall",
    notes=(
        "The data set is jostle's, made from the scripts of films; the value of a cell is R@1 at an overlap of 0.5.",
    ),
)
def puppets_moments_c() -> tuple[Group, ...]:
    """THUMOS14-C's question put to language, on films of puppets: no download."""
    return _moment_groups()
