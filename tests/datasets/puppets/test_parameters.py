"""Splits have disjoint casts of puppets."""

from __future__ import annotations

from itertools import combinations

from jostle.datasets.puppets.parameters import (
    CASTS,
    CLIP_CASTS,
    CLIPS,
    VIDEOS,
    clip_id,
    folder_name,
    puppet_of,
    video_id,
)


def test_casts_are_disjoint() -> None:
    assert CASTS.keys() == VIDEOS.keys()
    assert CLIP_CASTS.keys() == CLIPS.keys()
    for casts in (CASTS, CLIP_CASTS):
        for one, other in combinations(casts.values(), 2):
            assert not set(one) & set(other)
    assert not set(CLIP_CASTS["train"]) & set(CASTS["test"])


def test_clips_take_their_puppets_from_the_whole_cast_of_their_split() -> None:
    for subset, cast in CLIP_CASTS.items():
        played = {puppet_of(0, subset, clip_id(subset, "wave", number)) for number in range(1, 2001)}
        assert played == set(cast)


def test_names_are_unique() -> None:
    ids = {video_id(subset, number) for subset, count in VIDEOS.items() for number in range(1, count + 1)}
    assert len(ids) == sum(VIDEOS.values()) == 470
    assert folder_name(0) != folder_name(1)
