"""Sampling of the frames that a recogniser receives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import BadValue
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.sampling import Sampling


def sample(sampling: Sampling, total: int, frames: int = 8, stride: int = 8, seed: int = 0) -> list[list[int]]:
    indices = sampling.indices(total, frames=frames, stride=stride, rng=np.random.default_rng(seed))
    return indices.tolist()


@pytest.mark.parametrize(
    ("sampling", "total", "frames", "stride", "expected"),
    [
        (Sampling(clips=5), 100, 4, 8, [[first, first + 8, first + 16, first + 24] for first in (0, 18, 37, 56, 75)]),
        (Sampling(frames=3, stride=2), 11, 8, 8, [[3, 5, 7]]),
        (Sampling(clips=2), 5, 4, 2, [[0, 2, 4, 4]] * 2),  # the last frame is repeated
        (Sampling(spread="even"), 80, 8, 8, [[5, 15, 25, 35, 45, 55, 65, 75]]),
        (Sampling(spread="even"), 3, 6, 8, [[0, 0, 1, 1, 2, 2]]),
    ],
    ids=["from end to end", "centred", "short", "even", "even and short"],
)
def test_sampled_frames(sampling: Sampling, total: int, frames: int, stride: int, expected: list[list[int]]) -> None:
    assert sample(sampling, total, frames, stride) == expected


def test_sampling_rule_of_mini_kinetics_c() -> None:
    """As published, from 0: the widest integer stride from a random start; a shorter video is stretched."""
    rule = benchmarks["kinetics-c"].sampling
    assert rule is not None
    assert sample(rule, 20) == [[j * 20 // 32 for j in range(32)]]
    starts = set()
    for seed in range(40):
        (indices,) = sample(rule, 300, seed=seed)
        starts.add(indices[0])
        assert set(np.diff(indices)) == {(300 - 1) // 32}
    assert starts == set(range(9))
    assert sample(rule, 50) == [list(range(32))]  # a stride of 1 leaves the end out, as in the original


def test_published_numbers_of_clips_and_crops() -> None:
    papers = [name for name in benchmarks if benchmarks[name].task == "recognition" and name != "puppets-p"]
    samplings = {name: benchmarks[name].sampling for name in papers}
    assert {name: sampling.clips for name, sampling in samplings.items() if sampling} == {
        "kinetics-c": 1,
        "ssv2-c": 1,
        "ucf101-p": 5,
        "hmdb51-p": 5,
        "kinetics400-p": 10,
        "ssv2-p": 1,
    }
    assert {(sampling.crops, sampling.size) for sampling in samplings.values() if sampling} == {("centre", 224)}


RULES = st.one_of(
    st.builds(
        Sampling, frames=st.none() | st.integers(1, 40), stride=st.none() | st.integers(1, 9), clips=st.integers(1, 12)
    ),
    st.builds(Sampling, frames=st.none() | st.integers(1, 40), spread=st.sampled_from(["even", "drawn"])),
)


@given(
    rule=RULES, total=st.integers(1, 400), frames=st.integers(1, 40), stride=st.integers(1, 40), seed=st.integers(0, 9)
)
def test_sampled_frames_are_in_the_video_and_in_order(
    rule: Sampling, total: int, frames: int, stride: int, seed: int
) -> None:
    indices = rule.indices(total, frames=frames, stride=stride, rng=np.random.default_rng(seed))
    assert indices.shape == (rule.clips, rule.frames or frames)
    assert (indices >= 0).all()
    assert (indices < total).all()
    assert (np.diff(indices, axis=1) >= 0).all()
    assert (np.diff(indices[:, 0]) >= 0).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frames": 0}, "frames must be at least 1, got 0"),
        ({"spread": "even", "clips": 3}, "spread 'even' covers the whole video: leave clips and stride out"),
        ({"spread": "drawn", "stride": 3}, "spread 'drawn' covers the whole video"),
        ({"short_side": 200, "size": 224}, "a crop of 224 does not fit into a short side of 200"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        Sampling(**changes)


def test_an_empty_video_is_refused() -> None:
    with pytest.raises(BadValue, match="the video is empty"):
        sample(Sampling(), 0)
