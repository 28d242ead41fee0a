"""What AFSD has of its own: frames, clips, pooling around ends, a second look."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from jostle.core.config import make_settings
from jostle.errors import BadValue, DataError
from jostle.models.checkpoints import write_weights
from jostle.models.detection.afsd import AFSD, AfsdOutputs
from jostle.models.detection.blocks.afsd import Cut
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.boundaries import boundary_max_pool, pool_levels
from jostle.models.detection.detector import load_detector
from jostle.training.detection_config import TrainingConfig
from jostle.training.loop import Trainer

TINY: dict[str, Any] = {
    "dim": 64, "classes": 3, "max_length": 64, "levels": 4, "frame_size": 40, "crop": 32, "clip_stride": 32,
    "backbone_width": 0.06,
}  # fmt: skip


def tiny(**changes: Any) -> AFSD:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = load_detector("afsd", **(TINY | changes))
    assert isinstance(made, AFSD)
    return made


def film(count: int, size: tuple[int, int] = (48, 64), channels: int = 3) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, *size, channels), dtype=np.uint8)


def test_pooling_is_that_of_a_loop() -> None:
    """With regions that are turned round, empty, fractional and beyond the ends."""
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(2, 6, 37, generator=draw)
    x[:, :, 5:9] = x[:, :, 5:6]  # equals, of which the first is taken
    regions = torch.rand(2, 50, 4, generator=draw) * 50 - 6
    x.requires_grad_()
    made = boundary_max_pool(x, regions)
    wanted = torch.zeros_like(made)
    gradient = torch.zeros_like(x)
    weight = torch.rand(made.shape, generator=draw)
    for n, c, m in np.ndindex(*made.shape):
        first, last = (int(v) for v in regions[n, m, 2 * (c >= 3) :][:2])
        first, last = (min(max(v, 0), 36) for v in (first, last))
        place = first + int(x[n, c, first : max(first, last) + 1].argmax())
        wanted[n, c, m] = x[n, c, place]
        gradient[n, c, place] += weight[n, c, m]
    assert torch.equal(made, wanted)
    made.backward(weight)
    torch.testing.assert_close(x.grad, gradient)
    one, two = pool_levels(x, [regions[:, :20], regions[:, 20:]])
    assert torch.equal(torch.cat([one, two], -1), wanted)


def test_the_released_gradient_is_right_where_regions_are_as_many_as_steps() -> None:
    draw = torch.Generator().manual_seed(1)
    x, weight = torch.rand(1, 4, 16, generator=draw), torch.rand(1, 4, 16, generator=draw)
    regions = torch.rand(1, 16, 4, generator=draw) * 16
    found = []
    for faults in (False, True):
        y = x.clone().requires_grad_()
        boundary_max_pool(y, regions, reproduce_bugs=faults).backward(weight)
        found.append(y.grad)
    assert torch.equal(found[0], found[1])
    fewer = []
    for faults in (False, True):
        y = x.clone().requires_grad_()
        boundary_max_pool(y, regions[:, :5], reproduce_bugs=faults).backward(weight[..., :5])
        fewer.append(y.grad)
    assert not torch.equal(fewer[0], fewer[1])


def test_which_frames_are_looked_at() -> None:
    made = tiny()
    taken, rate = made.sample_indices(13, 30.0)
    assert (taken.tolist(), rate) == ([2, 5, 8, 11], 10.0)
    assert made.sample_indices(9, 25.0)[0].tolist() == [2, 4, 7]  # every two and a half
    assert made.sample_indices(4, 8.0)[0].tolist() == [0, 1, 2, 3]  # there are fewer than it would take
    assert made.sample_indices(4, 8.0)[1] == 8.0
    assert made.sample_indices(2, 30.0)[0].tolist() == [1]  # less than one frame of its own
    whole = tiny(fps=None)
    taken, rate = whole.sample_indices(128, 24.0)
    assert len(taken) == 64
    assert rate == 12.0
    assert whole.sample_indices(50, 24.0)[1] == 24.0


def test_clips_reach_the_end() -> None:
    made = tiny()
    assert made.clips(10) == [0]
    assert made.clips(64) == [0]
    assert made.clips(65) == [0, 1]
    assert made.clips(128) == [0, 32, 64]
    prepared = made.prepare(film(70))
    assert prepared.shape == (3, 70, 32, 32)
    last = made.clip(prepared, 32)
    assert last.shape == (1, 3, 64, 32, 32)
    assert last.min() >= -1
    assert (last[:, :, 38:] == 0).all()  # what is not there is the middle of the scale
    assert torch.equal(made.prepare(film(3, (40, 40)))[:, :, 0, 0].T, torch.from_numpy(film(3, (40, 40))[:, 4, 4]))


def test_a_video_gives_segments_and_a_clip_its_outputs() -> None:
    made = tiny(min_probability=0.0)
    found = made.detect(film(200), fps=20.0, duration=10.0)
    assert found.score is not None
    assert len(found) > 0
    assert found.end.max() <= 10.0
    assert (np.diff(found.score) <= 0).all()
    raw = made.raw(film(64))
    assert raw["offsets"].shape == (30, 2)
    assert raw["logits"].shape == (30, 4)
    assert raw["frame_sides"].shape == (64, 64)
    with pytest.raises(BadValue, match="65 frames are more than the 64 of a clip"):
        made.raw(film(65))


def test_frames_that_cannot_be_used() -> None:
    made = tiny()
    for bad in (film(4)[0], film(4, channels=2), film(4).astype(np.float32)):
        with pytest.raises(BadValue, match=r"frames must be \(T, H, W, 3\) uint8"):
            made.detect(bad, fps=10, duration=1)
    with pytest.raises(DataError, match="there are none"):
        made.detect(film(0), fps=10, duration=1)
    with pytest.raises(BadValue, match="fps must be above 0"):
        made.detect(film(4), fps=0, duration=1)


@pytest.mark.parametrize("form", ["thumos14", "activitynet"])
def test_flow_is_averaged_in(form: str) -> None:
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
def test_a_few_steps_learn_and_leave_the_norms(form: str) -> None:
    made = tiny(form=form).train()
    made.backbone.requires_grad_(False)
    clip = made.clip(made.prepare(film(64)), 0)
    actions = Actions.of([([[10.0, 40.0]], [1])])
    norms = {key: value.clone() for key, value in made.state_dict().items() if ".bn." in key}
    assert norms
    adam = torch.optim.Adam([p for p in made.parameters() if p.requires_grad], 1e-3)
    losses = []
    for _ in range(12):
        found = made.loss(made(clip), actions)
        adam.zero_grad()
        found.total.backward()
        adam.step()
        # The better coarse segments get, the more are refined: the total need not fall.
        losses.append((found.classification + found.regression).item())
    assert losses[-1] < 0.8 * losses[0]
    tensors = made.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in norms.items())


def test_no_actions_only_background() -> None:
    made = tiny().train()
    losses = made.loss(made(made.clip(made.prepare(film(64)), 0)), Actions.of([([], [])]))
    losses.total.backward()
    assert losses.regression.item() == losses.others["quality"].item() == 0
    assert losses.classification.item() > 0
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in made.parameters())


def test_background_is_moved_into_an_action() -> None:
    later = Cut(10, 30, at=20, background=50, length=4)
    assert later.order(64).tolist() == [*range(20), 50, 51, 52, 53, *range(20, 50), *range(54, 64)]
    assert later.segments().tolist() == [[10, 20], [24, 34], [21, 23]]
    earlier = Cut(10, 30, at=20, background=2, length=4)
    order = earlier.order(64).tolist()
    assert order == [0, 1, *range(6, 20), 2, 3, 4, 5, *range(20, 64)]
    assert earlier.segments().tolist() == [[6, 16], [20, 30], [17, 19]]


def test_it_is_said_where_features_are_wanted(tmp_path: Any) -> None:
    made = tiny()
    assert made.looks_at == "frames"
    config = make_settings(
        TrainingConfig, {"detector": "afsd", "settings": TINY, "data": {"features": "a", "truth": "b"}}
    )
    with pytest.raises(BadValue, match="afsd takes frames; this task trains detectors on features"):
        Trainer(config, tmp_path)


def test_saved_and_loaded_is_the_same(tmp_path: Any) -> None:
    made = tiny()
    write_weights(made.state_dict(), tmp_path / "a.safetensors")
    again = load_detector("afsd", weights=tmp_path / "a.safetensors", **TINY)
    assert isinstance(again, AFSD)
    wanted, found = made.raw(film(40)), again.raw(film(40))
    assert all(np.array_equal(wanted[key], found[key]) for key in wanted)


def test_settings_that_cannot_be() -> None:
    for changes, message in (
        ({"dim": 48}, "dim 48 does not divide into the 32 groups"),
        ({"max_length": 48}, "4 levels need a max_length that is a multiple of 32, not 48"),
        ({"crop": 40}, "crop is a multiple of 32, not 40"),
        ({"crop": 64}, "crop 64 is larger than frame_size 40"),
        ({"backbone_width": 0.0}, "backbone_width is above 0"),
        ({"form": "kinetics"}, "form"),
        ({"fps": 0.0}, "fps must be above 0"),
        ({"levels": 1}, "levels are from 2"),
    ):
        with pytest.raises(BadValue, match=message):
            tiny(**changes)


@pytest.mark.parametrize(("reproduce_bugs", "step"), [(False, 20), (True, 31)])
def test_regions_of_the_triplet_loss_are_in_steps_of_the_finest_level(reproduce_bugs: bool, step: int) -> None:
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
