"""Which frames a recogniser is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import BadValue
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.sampling import Sampling


def shown(sampling: Sampling, total: int, frames: int = 8, stride: int = 8, seed: int = 0) -> list[list[int]]:
    found = sampling.indices(total, frames=frames, stride=stride, rng=np.random.default_rng(seed))
    return found.tolist()


def test_clips_begin_evenly_spaced_and_reach_both_ends() -> None:
    found = shown(Sampling(clips=5), 100, frames=4, stride=8)
    assert [clip[0] for clip in found] == [0, 18, 37, 56, 75]
    assert found[-1][-1] == 99
    assert {tuple(np.diff(clip)) for clip in found} == {(8, 8, 8)}


def test_a_single_clip_is_the_middle() -> None:
    assert shown(Sampling(frames=3, stride=2), 11) == [[3, 5, 7]]


def test_a_short_video_holds_its_last_frame() -> None:
    assert shown(Sampling(clips=2), 5, frames=4, stride=2) == [[0, 2, 4, 4]] * 2


def test_frames_from_the_middle_of_equal_parts() -> None:
    assert shown(Sampling(spread="even"), 80) == [[5, 15, 25, 35, 45, 55, 65, 75]]
    assert shown(Sampling(spread="even"), 3, frames=6) == [[0, 0, 1, 1, 2, 2]]


def test_the_rule_of_mini_kinetics_c() -> None:
    """As published, from 0: the widest whole stride, from a drawn beginning; too short a video is stretched."""
    rule = benchmarks["kinetics-c"].sampling
    assert rule is not None
    assert shown(rule, 20) == [[j * 20 // 32 for j in range(32)]]
    beginnings = set()
    for seed in range(40):
        (found,) = shown(rule, 300, seed=seed)
        beginnings.add(found[0])
        assert set(np.diff(found)) == {(300 - 1) // 32}
    assert beginnings == set(range(9))
    assert shown(rule, 50) == [list(range(32))]  # a stride of 1 leaves the end unseen, as in the original


def test_clips_and_crops_of_the_papers() -> None:
    papers = [name for name in benchmarks if benchmarks[name].task == "recognition" and name != "puppets-p"]
    clips = {name: benchmarks[name].sampling for name in papers}
    assert {name: found.clips for name, found in clips.items() if found} == {
        "kinetics-c": 1,
        "ssv2-c": 1,
        "ucf101-p": 5,
        "hmdb51-p": 5,
        "kinetics400-p": 10,
        "ssv2-p": 1,
    }
    assert {(found.crops, found.size) for found in clips.values() if found} == {("centre", 224)}


RULES = st.one_of(
    st.builds(
        Sampling, frames=st.none() | st.integers(1, 40), stride=st.none() | st.integers(1, 9), clips=st.integers(1, 12)
    ),
    st.builds(Sampling, frames=st.none() | st.integers(1, 40), spread=st.sampled_from(["even", "drawn"])),
)


@given(
    rule=RULES, total=st.integers(1, 400), frames=st.integers(1, 40), stride=st.integers(1, 40), seed=st.integers(0, 9)
)
def test_every_frame_shown_is_in_the_video_and_in_order(
    rule: Sampling, total: int, frames: int, stride: int, seed: int
) -> None:
    found = rule.indices(total, frames=frames, stride=stride, rng=np.random.default_rng(seed))
    assert found.shape == (rule.clips, rule.frames or frames)
    assert (found >= 0).all()
    assert (found < total).all()
    assert (np.diff(found, axis=1) >= 0).all()
    assert (np.diff(found[:, 0]) >= 0).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"frames": 0}, "frames must be at least 1, got 0"),
        ({"spread": "even", "clips": 3}, "spread 'even' covers the whole video: leave clips and stride out"),
        ({"spread": "drawn", "stride": 3}, "spread 'drawn' covers the whole video"),
        ({"short_side": 200, "size": 224}, "a crop of 224 does not fit into a short side of 200"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadValue, match=said):
        Sampling(**changes)


def test_an_empty_video_has_nothing_to_show() -> None:
    with pytest.raises(BadValue, match="the video is empty"):
        shown(Sampling(), 0)
