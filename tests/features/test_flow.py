"""Two-stream features: optical flow is recomputed only where a pair of frames changed, with identical results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jostle
from helpers.flow_extractor import Moving
from helpers.numpy_extractor import moving
from jostle import Clip
from jostle.core.types import Segments
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource
from jostle.features.engine import VideoFeatures
from jostle.features.extraction import Cost
from jostle.models.extractors.extractor import load_extractor

FPS = 25
ACTIONS = Segments.from_pairs([(0.2, 0.9), (0.8, 0.83), (1.1, 9.0)])


def make_features(frames: np.ndarray, extractor: Moving, **options) -> VideoFeatures:
    return VideoFeatures(ClipSource(Clip.at_rate(frames, FPS)), extractor, video_id="v", segments=ACTIONS, **options)


def extract_windows(frames: np.ndarray, extractor: Moving) -> np.ndarray:
    """Extract every window separately, with the flow to the next frame; the last frame repeats the flow before it."""
    n, window, stride = len(frames), extractor.window, extractor.stride
    last = max(n - 2, 0)
    flow = extractor.flow(frames[: last + 1], frames[[min(t + 1, n - 1) for t in range(last + 1)]])
    count = max((n - window) // stride + 1, 1)
    rows = [[min(i * stride + k, n - 1) for k in range(window)] for i in range(count)]
    moves = [[min(t, last) for t in row] for row in rows]
    return extractor(np.stack([frames[row] for row in rows]), np.stack([flow[row] for row in moves]))


@pytest.mark.parametrize("count", [1, 2, 5, 15, 16, 17, 20, 103])
def test_clean_features_equal_the_definition(count: int) -> None:
    frames, extractor = moving(count), Moving()
    video = make_features(frames, extractor)
    assert np.array_equal(video.clean().features, extract_windows(frames, Moving()))
    used = (len(video) - 1) * 4 + 16
    assert video.cost.flows == sum(extractor.pairs) == min(used, max(count - 1, 1))  # each pair once


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.sampled_from(
            [
                "thumos14-c/black_frame:2",
                "thumos14-c/packet_loss:3",
                "gaussian_noise:3",
                "frame_average:2",
                "brightness:0",
                "freeze:4",
                "jumble:2",
                "thumos14-c/slow_motion:3",
                "jpeg_compression:2",
            ]
        ),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from([None, "everywhere", "frame:0", "frame:39", "frames:10-13", "random:4", "centre:5%"]),
    st.integers(40, 60),
    st.integers(1, 18),
    st.integers(1, 9),
    st.sampled_from([0, 2000, 2**20]),
)
def test_incremental_features_equal_full_features(
    spec_texts: list[str], placement: str | None, count: int, window: int, stride: int, keep_bytes: int
) -> None:
    """Compare at every level of corruption, with and without memory to keep the flow."""
    frames, extractor = moving(count, 16, 20), Moving(window, stride)
    video = make_features(frames, extractor, keep_bytes=keep_bytes)
    specs = [Spec.parse(spec) for spec in spec_texts]
    incremental = video.under(specs, placement)
    corrupted = jostle.corrupt(frames, spec_texts, video_id="v", placement=placement, segments=ACTIONS, fps=FPS)
    assert np.array_equal(incremental.features, extract_windows(corrupted, Moving(window, stride)))
    assert video.whole(specs, placement).features.tobytes() == incremental.features.tobytes()


def test_flow_is_computed_where_a_pair_changed() -> None:
    video = make_features(moving(80), Moving())
    video.clean()
    assert video.under([Spec.parse("black_frame:3")], "frame:40").cost == Cost(joined=5, flows=2)
    under = video.under([Spec.parse("black_frame:3")], "frame:40")
    rows = np.flatnonzero((under.features != video.clean().features).any(1))
    assert rows.tolist() == [6, 7, 8, 9, 10]  # the window from 24 to 39 includes the flow to frame 40
    assert video.under([Spec.parse("jumble:3")], "frames:40-43").cost.flows < 5
    assert video.under([Spec.parse("brightness:0")], "everywhere").cost == Cost()


def test_flow_is_recomputed_without_memory_to_keep_it() -> None:
    video = make_features(moving(80), Moving(), keep_bytes=0)
    assert video.clean().cost.flows == 79
    assert video.under([Spec.parse("black_frame:3")], "frame:40").cost.flows == 16 + 4 * 4


def test_flow_of_a_resampled_video() -> None:
    frames = moving(60)
    video = make_features(frames, Moving(8, 4, fps=12.5))
    assert np.array_equal(video.clean().features, extract_windows(frames[::2], Moving(8, 4)))
    result = video.under([Spec.parse("black_frame:1")], "frame:21")  # skipped at this rate
    assert result.cost == Cost()


@pytest.mark.slow
def test_incremental_features_of_the_i3d_network() -> None:
    extractor = load_extractor("i3d_two_stream_centre", weights="random", resize=(224, 224))
    video = VideoFeatures(ClipSource(Clip.at_rate(moving(20, 64, 80), 24)), extractor, video_id="v")
    clean = video.clean()
    assert clean.features.shape == (2, 2048)
    assert clean.cost == Cost(decoded=20, joined=2, flows=19)
    specs = [Spec.parse("black_frame:3")]
    incremental, full = video.under(specs, "frame:16"), video.whole(specs, "frame:16")
    assert incremental.features.tobytes() == full.features.tobytes()
    assert incremental.cost == Cost(joined=2, flows=2)
    changed = incremental.features != clean.features
    assert changed[:, :1024].any(1).tolist() == [False, True]  # the first window ends before the corrupted frame,
    assert changed[:, 1024:].any(1).tolist() == [True, True]  # but includes the flow to it
