"""The networks themselves before the engine: pieces put together are the whole, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.numpy_extractor import moving
from jostle import Clip
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource
from jostle.features.engine import VideoFeatures
from jostle.features.extraction import Cost
from jostle.models.extractors.extractor import load_extractor


def test_a_network_in_two_parts() -> None:
    video = VideoFeatures(
        ClipSource(Clip.at_rate(moving(90, 56, 56), 24)), load_extractor("puppet_net", weights="random"), video_id="v"
    )
    for spec, place in (("packet_loss:3", "frames:40-47"), ("gaussian_noise:2", "random:5"), ("jumble:3", None)):
        specs = [Spec.parse(f"thumos14-c/{spec}" if "packet" in spec else spec)]
        part, whole = video.under(specs, place), video.whole(specs, place)
        assert part.features.tobytes() == whole.features.tobytes()
        assert part.seen.tobytes() == whole.seen.tobytes()
        assert part.cost.seen < 10
        assert (part.features != video.clean().features).any()


@pytest.mark.slow
def test_a_network_that_sees_windows_whole() -> None:
    extractor = load_extractor("i3d_rgb_centre", weights="random")
    video = VideoFeatures(ClipSource(Clip.at_rate(moving(50, 64, 80), 24)), extractor, video_id="v")
    assert video.clean().cost == Cost(decoded=48, joined=3)
    part = video.under([Spec.parse("black_frame:3")], "frame:20")
    assert part.cost == Cost(joined=1)
    whole = video.whole([Spec.parse("black_frame:3")], "frame:20")
    assert part.features.tobytes() == whole.features.tobytes()
    assert np.flatnonzero((part.features != video.clean().features).any(1)).tolist() == [1]
