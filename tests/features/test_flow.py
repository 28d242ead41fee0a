"""Two-stream features: optical flow is recomputed only where a pair of frames changed, with identical results."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.flow_extractor import Moving, extract_windows, make_features
from helpers.numpy_extractor import moving
from jostle import Clip
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource
from jostle.features.engine import VideoFeatures
from jostle.features.extraction import Cost
from jostle.models.extractors.extractor import load_extractor

FPS = 25


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
