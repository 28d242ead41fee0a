"""Incremental features of the bundled networks equal, bit for bit, those of full extraction."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.numpy_extractor import moving
from jostle import Clip
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.spec import Spec
from jostle.features.extraction import Cost
from jostle.features.video import VideoFeatures
from jostle.models.loading.extractors import load_extractor


def test_a_network_in_two_parts() -> None:
    video = VideoFeatures(
        ClipSource(Clip.at_rate(moving(90, 56, 56), 24)), load_extractor("puppet_net", weights="random"), video_id="v"
    )
    for spec, placement in (("packet_loss:3", "frames:40-47"), ("gaussian_noise:2", "random:5"), ("jumble:3", None)):
        specs = [Spec.parse(f"thumos14-c/{spec}" if "packet" in spec else spec)]
        incremental, full = video.under(specs, placement), video.whole(specs, placement)
        assert incremental.features.tobytes() == full.features.tobytes()
        assert incremental.seen.tobytes() == full.seen.tobytes()
        assert incremental.cost.seen < 10
        assert (incremental.features != video.clean().features).any()


@pytest.mark.slow
def test_a_network_that_processes_whole_windows() -> None:
    extractor = load_extractor("i3d_rgb_centre", weights="random")
    video = VideoFeatures(ClipSource(Clip.at_rate(moving(50, 64, 80), 24)), extractor, video_id="v")
    assert video.clean().cost == Cost(decoded=48, joined=3)
    incremental = video.under([Spec.parse("black_frame:3")], "frame:20")
    assert incremental.cost == Cost(joined=1)
    full = video.whole([Spec.parse("black_frame:3")], "frame:20")
    assert incremental.features.tobytes() == full.features.tobytes()
    assert np.flatnonzero((incremental.features != video.clean().features).any(1)).tolist() == [1]


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
