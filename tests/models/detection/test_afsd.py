"""AFSD: frame sampling, clips, boundary pooling, refinement and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from helpers.detector_forms import SMALL, descend, film, small
from jostle.core.settings import make_settings
from jostle.errors import BadValue, DataError
from jostle.models.detection.afsd import AFSD, AfsdOutputs
from jostle.models.detection.blocks.afsd import Cut
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.boundaries import boundary_max_pool, pool_levels
from jostle.training.detection_config import TrainingConfig
from jostle.training.loop import Trainer


def tiny(**changes: Any) -> AFSD:
    detector = small("afsd", **changes)
    assert isinstance(detector, AFSD)
    return detector


def test_boundary_max_pool_equals_a_loop() -> None:
    """Regions include reversed, empty and fractional ones, and some beyond the ends."""
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(2, 6, 37, generator=draw)
    x[:, :, 5:9] = x[:, :, 5:6]  # ties, of which the first is taken
    regions = torch.rand(2, 50, 4, generator=draw) * 50 - 6
    x.requires_grad_()
    pooled = boundary_max_pool(x, regions)
    expected = torch.zeros_like(pooled)
    gradient = torch.zeros_like(x)
    weight = torch.rand(pooled.shape, generator=draw)
    for n, c, m in np.ndindex(*pooled.shape):
        first, last = (int(v) for v in regions[n, m, 2 * (c >= 3) :][:2])
        first, last = (min(max(v, 0), 36) for v in (first, last))
        index = first + int(x[n, c, first : max(first, last) + 1].argmax())
        expected[n, c, m] = x[n, c, index]
        gradient[n, c, index] += weight[n, c, m]
    assert torch.equal(pooled, expected)
    pooled.backward(weight)
    torch.testing.assert_close(x.grad, gradient)
    one, two = pool_levels(x, [regions[:, :20], regions[:, 20:]])
    assert torch.equal(torch.cat([one, two], -1), expected)


def test_released_gradient_is_correct_for_as_many_regions_as_steps() -> None:
    draw = torch.Generator().manual_seed(1)
    x, weight = torch.rand(1, 4, 16, generator=draw), torch.rand(1, 4, 16, generator=draw)
    regions = torch.rand(1, 16, 4, generator=draw) * 16
    gradients = []
    for faults in (False, True):
        y = x.clone().requires_grad_()
        boundary_max_pool(y, regions, reproduce_bugs=faults).backward(weight)
        gradients.append(y.grad)
    assert torch.equal(gradients[0], gradients[1])
    fewer = []
    for faults in (False, True):
        y = x.clone().requires_grad_()
        boundary_max_pool(y, regions[:, :5], reproduce_bugs=faults).backward(weight[..., :5])
        fewer.append(y.grad)
    assert not torch.equal(fewer[0], fewer[1])


def test_sampled_frame_indices() -> None:
    detector = tiny()
    indices, rate = detector.sample_indices(13, 30.0)
    assert (indices.tolist(), rate) == ([2, 5, 8, 11], 10.0)
    assert detector.sample_indices(9, 25.0)[0].tolist() == [2, 4, 7]  # every 2.5 frames
    assert detector.sample_indices(4, 8.0)[0].tolist() == [0, 1, 2, 3]  # fewer frames than would be sampled
    assert detector.sample_indices(4, 8.0)[1] == 8.0
    assert detector.sample_indices(2, 30.0)[0].tolist() == [1]  # shorter than one sampled frame
    whole_video_detector = tiny(fps=None)
    indices, rate = whole_video_detector.sample_indices(128, 24.0)
    assert len(indices) == 64
    assert rate == 12.0
    assert whole_video_detector.sample_indices(50, 24.0)[1] == 24.0


def test_clips_cover_the_end_of_the_video() -> None:
    detector = tiny()
    assert detector.clips(10) == [0]
    assert detector.clips(64) == [0]
    assert detector.clips(65) == [0, 1]
    assert detector.clips(128) == [0, 32, 64]
    prepared = detector.prepare(film(70))
    assert prepared.shape == (3, 70, 32, 32)
    last = detector.clip(prepared, 32)
    assert last.shape == (1, 3, 64, 32, 32)
    assert last.min() >= -1
    assert (last[:, :, 38:] == 0).all()  # missing frames have the middle value of the scale
    assert torch.equal(detector.prepare(film(3, (40, 40)))[:, :, 0, 0].T, torch.from_numpy(film(3, (40, 40))[:, 4, 4]))


def test_shapes_of_outputs() -> None:
    detector = tiny(min_probability=0.0)
    raw = detector.raw(film(64))
    assert raw["offsets"].shape == (30, 2)
    assert raw["logits"].shape == (30, 4)
    assert raw["frame_sides"].shape == (64, 64)
    with pytest.raises(BadValue, match="65 frames are more than the 64 of a clip"):
        detector.raw(film(65))


def test_invalid_frames_are_refused() -> None:
    detector = tiny()
    for bad in (film(4)[0], film(4, channels=2), film(4).astype(np.float32)):
        with pytest.raises(BadValue, match=r"frames must be \(T, H, W, 3\) uint8"):
            detector.detect(bad, fps=10, duration=1)
    with pytest.raises(DataError, match="there are none"):
        detector.detect(film(0), fps=10, duration=1)
    with pytest.raises(BadValue, match="fps must be above 0"):
        detector.detect(film(4), fps=0, duration=1)


@pytest.mark.parametrize("form", ["thumos14", "activitynet"])
def test_scores_of_rgb_and_flow_are_averaged(form: str) -> None:
    kinds: dict[str, Any] = {"form": form, "min_probability": 0.0}
    rgb, flow = tiny(**kinds), tiny(**kinds, input_dim=2)
    pixels, motion = film(64), film(64, channels=2)
    facts = {"fps": 10.0, "duration": 6.4}
    both = rgb.detect(pixels, flow=motion, flow_detector=flow, **facts)
    alone = rgb.detect(pixels, **facts)
    assert both.score is not None
    assert not np.array_equal(both.score[:5], alone.score[:5])
    same = rgb.detect(pixels, flow=pixels, flow_detector=rgb, **facts)
    np.testing.assert_allclose(same.start, alone.start, atol=1e-4)
    np.testing.assert_allclose(same.score, alone.score, rtol=1e-4)
    with pytest.raises(BadValue, match="go together"):
        rgb.detect(pixels, flow=motion, **facts)
    with pytest.raises(BadValue, match="64 frames have the flow of 60"):
        rgb.detect(pixels, flow=motion[:60], flow_detector=flow, **facts)


@pytest.mark.parametrize("form", ["thumos14", pytest.param("activitynet", marks=pytest.mark.slow)])
def test_training_reduces_the_loss_and_keeps_the_norms(form: str) -> None:
    detector = tiny(form=form).train()
    detector.backbone.requires_grad_(False)
    clip = detector.clip(detector.prepare(film(64)), 0)
    actions = Actions.of([([[10.0, 40.0]], [1])])
    norms = {key: value.clone() for key, value in detector.state_dict().items() if ".bn." in key}
    assert norms
    first, *_, last = descend(detector, (clip,), actions, lr=1e-3, steps=12)
    # Better coarse segments lead to more refined ones, so the total need not decrease.
    assert last.classification + last.regression < 0.8 * (first.classification + first.regression)
    tensors = detector.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in norms.items())


def test_triplet_background_is_moved_into_an_action() -> None:
    later = Cut(10, 30, at=20, background=50, length=4)
    assert later.order(64).tolist() == [*range(20), 50, 51, 52, 53, *range(20, 50), *range(54, 64)]
    assert later.segments().tolist() == [[10, 20], [24, 34], [21, 23]]
    earlier = Cut(10, 30, at=20, background=2, length=4)
    order = earlier.order(64).tolist()
    assert order == [0, 1, *range(6, 20), 2, 3, 4, 5, *range(20, 64)]
    assert earlier.segments().tolist() == [[6, 16], [20, 30], [17, 19]]


def test_feature_detector_settings_are_refused(tmp_path: Any) -> None:
    detector = tiny()
    assert detector.looks_at == "frames"
    config = make_settings(
        TrainingConfig, {"detector": "afsd", "settings": SMALL["afsd"], "data": {"features": "a", "truth": "b"}}
    )
    with pytest.raises(BadValue, match="afsd takes frames; this task trains detectors on features"):
        Trainer(config, tmp_path)


@pytest.mark.parametrize(("reproduce_bugs", "step"), [(False, 20), (True, 31)])
def test_triplet_loss_regions_are_in_steps_of_the_finest_level(reproduce_bugs: bool, step: int) -> None:
    """A step is 8 frames of ActivityNet: frame 160 is step 20. The program divides by 4, beyond the last step, 31."""
    detector = tiny(form="activitynet", max_length=256, reproduce_bugs=reproduce_bugs)
    assert detector.config.finest == 8
    sides = torch.zeros(1, 2, 32)
    sides[0, 0, step] = 5.0  # where the second segment starts
    nothing = torch.zeros(0)
    outputs = AfsdOutputs(nothing, nothing, nothing, nothing, nothing, torch.zeros(1, 2, 256), sides, sides)
    loss = detector.triplet(outputs, torch.tensor([[[16.0, 48.0], [160.0, 192.0], [96.0, 128.0]]]))
    # The margin of 1 of the frames, where nothing is; on the finest level the positive is 5 further than the negative.
    assert loss.item() == pytest.approx(1 + 0.1 * (6 + 6), rel=1e-5)
