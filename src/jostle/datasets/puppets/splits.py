"""Splits of the puppet data set: videos of each subset, and the puppets that may appear in them.

A puppet plays in one split only, trimmed or not, so nobody who is tested on has been seen before. The feature network
has a cast of its own, as networks are trained on Kinetics before they see THUMOS14.
"""

from __future__ import annotations

from jostle.core.random import key_for

VERSION = 1  # of the films: raise it when the same names give other pictures

VIDEOS = {"extractor": 160, "training": 200, "validation": 50, "test": 60}
CLIPS = {"train": 60, "val": 15, "test": 25}  # of each class

CASTS = {
    "training": range(120),
    "validation": range(120, 150),
    "test": range(150, 200),
    "extractor": range(200, 320),
}
# Trimmed clips share the casts of the untrimmed videos, under the names that recognition uses.
CLIP_CASTS = {"train": CASTS["training"], "val": CASTS["validation"], "test": CASTS["test"]}


def folder_name(seed: int) -> str:
    """Return the folder name of a seed and version.

    >>> folder_name(0)
    'puppets-v1-seed0'
    """
    return f"puppets-v{VERSION}-seed{seed}"


def video_id(subset: str, number: int) -> str:
    """Return the id of an untrimmed video, counted from 1.

    >>> video_id("test", 1)
    'puppet_test_0001'
    """
    return f"puppet_{subset}_{number:04d}"


def clip_id(subset: str, label: str, number: int) -> str:
    """Return the id of a trimmed clip, counted from 1 in each class.

    >>> clip_id("train", "sit_down", 12)
    'puppet_train_sit_down_0012'
    """
    return f"puppet_{subset}_{label}_{number:04d}"


def puppet_of(seed: int, subset: str, clip: str) -> int:
    """Return the puppet that acts in a trimmed clip."""
    cast = CLIP_CASTS[subset]
    return cast[key_for(seed, "puppets", "clip", clip) % len(cast)]
