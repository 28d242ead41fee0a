"""Bugs of DETAD's public program, and what jostle does instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MendedFault:
    """A bug of the public program that is fixed here.

    Attributes:
        number: in the list of known bugs; 0 for an intended difference that is not in it.
        original: what the public program does.
        ours: what is done here.
    """

    number: int
    original: str
    ours: str


MENDED_FAULTS = (
    MendedFault(
        1,
        "In a video without ground truth only the first unmatched prediction is called background; the following are "
        "compared with the instances of the video before it, or the program stops.",
        "Every unmatched prediction in such a video is background.",
    ),
    MendedFault(
        2,
        "Sensitivity stops at a class without a prediction, and an empty bucket makes the smallest and largest value "
        "depend on the order of the buckets.",
        "Such a class counts 0; an empty bucket has no value and is left out of smallest and largest.",
    ),
    MendedFault(
        3,
        "A class whose instances were all dropped turns every mean into NaN, but counts 0 among the top-10G.",
        "Such a class is left out of every mean; the normaliser still counts it among the classes.",
    ),
    MendedFault(
        4,
        "A prediction of no length, or one that ends before it starts, can match an instance.",
        "It matches nothing.",
    ),
    MendedFault(
        7,
        "A characteristic that is missing, or outside all buckets, stops the analysis of false negatives.",
        "The instance is in no bucket of that characteristic; how many there are is reported.",
    ),
    MendedFault(
        8,
        "Ground truth that spells `num_instances`, as the THUMOS14 validation file does, is refused; so is any file "
        "without coverage, length or number of instances.",
        "Both spellings are understood, and what can be computed is computed.",
    ),
    MendedFault(
        9,
        "Tied scores are sorted by an unstable sort, so results move with the versions installed.",
        "Every sort is stable: the later of two rows is matched first, as the public program means it.",
    ),
    MendedFault(
        0,
        "A prediction of a class that the ground truth lacks stops the program.",
        "It is left out and counted, unless most are such.",
    ),
)
