"""Sampling of frames by models with their own sampling rules."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from jostle.core.random import rng_for
from jostle.evaluation.recipes.sampling import Sampling, sample_frames, spread_clips
from jostle.models.input_spec import InputSpec


def rows(spec: InputSpec, total: int, sampling: Sampling = Sampling(), fps: int = 30) -> list[list[int]]:  # noqa: B008
    indices: list[list[int]] = sample_frames(sampling, spec, np.arange(total) / fps, Fraction(fps), rng_for(0)).tolist()
    return indices


def spec_of(frames: int, step: int, **fields: Any) -> InputSpec:
    return InputSpec(frames, frames, None, 8, step=step, **({"fps": 30.0, "spread": "span"} | fields))


@pytest.mark.parametrize(
    ("frames", "step", "expected"),
    [(8, 8, [0, 9, 18, 27, 36, 45, 54, 63]), (4, 16, [0, 21, 42, 63]), (16, 5, [5.266 * i for i in range(16)])],
)
def test_a_span_includes_its_first_and_last_frame(frames: int, step: int, expected: list[float]) -> None:
    assert rows(spec_of(frames, step), frames * step) == [[int(index + 1e-2) for index in expected]]


def test_a_span_scales_with_the_frame_rate() -> None:
    assert rows(spec_of(8, 8), 128, fps=60) == [[i * 127 // 7 for i in range(8)]]
    assert rows(spec_of(4, 3), 10, fps=25) == [[0, 3, 6, 9]]  # 12 frames at 30 are 10 at 25
    assert rows(spec_of(4, 3, fps=None), 12, fps=25) == [[0, 3, 7, 11]]


def test_a_short_video_repeats_its_last_frame() -> None:
    assert rows(spec_of(4, 16), 30) == [[0, 21, 29, 29]]
    assert rows(spec_of(4, 16, clips=3), 30) == [[0, 21, 29, 29]] * 3


def test_start_frames_of_several_clips() -> None:
    span = Fraction(64)
    assert spread_clips(300, span, 8, 10, "parts")[:, 0].tolist() == [int(23.6 * i + 1e-9) for i in range(10)]
    assert spread_clips(300, span, 16, 5, "ends")[:, 0].tolist() == [0, 59, 118, 177, 236]
    assert spread_clips(300, span, 8)[:, 0].tolist() == [118]


def test_the_number_of_clips_is_that_of_the_model_or_of_the_benchmark() -> None:
    spec, requested = spec_of(8, 8, clips=10, starts="parts"), Sampling(clips=3)
    assert len(rows(spec, 300, requested)) == 10
    assert rows(spec_of(8, 8), 300, requested) == spread_clips(300, Fraction(64), 8, 3).tolist()
    # A stride or spread of the benchmark applies to models that do not set the number of clips.
    assert rows(spec_of(4, 8), 100, Sampling(stride=2)) == [[46, 48, 50, 52]]
    assert rows(spec_of(4, 8), 100, Sampling(spread="even")) == [[12, 37, 62, 87]]
    assert rows(spec_of(4, 8, clips=1), 100, Sampling(spread="even")) == spread_clips(100, Fraction(32), 4).tolist()


@pytest.mark.parametrize(("spread", "expected"), [("even", [12, 37, 62, 87]), ("first", [0, 25, 50, 75])])
def test_a_clip_spread_over_the_whole_video_ignores_rate_and_step(spread: str, expected: list[int]) -> None:
    for sampling in (Sampling(), Sampling(clips=10), Sampling(spread="drawn")):
        assert rows(spec_of(4, 8, spread=spread), 100, sampling) == [expected]
