"""What BasicTAD has of its own: which frames, clips that may be short, places that move, implied classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import write_weights
from jostle.models.detection.basictad import BasicTAD
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.basictad import (
    BACKGROUND,
    IGNORED,
    level_ranges,
    make_anchors,
    match_anchors,
    point_answers,
    without_implied,
)
from jostle.models.detection.blocks.convolution import DeformableConv, sampled
from jostle.models.detection.detector import detectors, load_detector
from jostle.models.detection.nms import weighted_nms
from jostle.models.detection.outputs import Candidates

FORMS = ("anchors", "sigmoid_points", "softmax_points")
TINY: dict[str, Any] = {
    "dim": 32, "neck_dim": 16, "classes": 3, "max_length": 32, "levels": 4, "frame_size": 40, "crop": 32,
    "clip_stride": 24, "backbone_width": 0.06, "fps": 5.0,
}  # fmt: skip


def tiny(**changes: Any) -> BasicTAD:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = load_detector("basictad", **(TINY | changes))
    assert isinstance(made, BasicTAD)
    return made


def film(count: int, size: tuple[int, int] = (48, 64)) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, *size, 3), dtype=np.uint8)


@pytest.mark.parametrize("name", ["basictad_thumos_afs3", "basictad_thumos_afm6"])
def test_sizes_without_anchors_are_the_published_ones(name: str) -> None:
    variant = detectors[name]
    with torch.device("meta"):
        made = variant.model(variant.config())
    assert round(sum(p.numel() for p in made.parameters()) / 1e6, 1) == 132.5


def test_which_frames_are_looked_at() -> None:
    """As FFmpeg's filter `fps` does: of 25 a second 5 are the third of each five, and of 4 some come twice."""
    made = tiny()
    taken, rate = made.sample_indices(15, 25.0)
    assert (taken.tolist(), rate) == ([2, 7, 12], 5.0)
    assert made.sample_indices(4, 5.0)[0].tolist() == [0, 1, 2, 3]
    taken, rate = made.sample_indices(4, 2.5)
    assert (taken.tolist(), rate) == ([0, 0, 1, 1, 2, 2, 3, 3], 5.0)
    assert made.sample_indices(1, 30.0)[0].tolist() == [0]  # less than one frame of its own
    assert tiny(fps=None).sample_indices(64, 24.0)[1] == 12.0


def test_clips_are_equally_far_apart_and_the_last_may_be_short() -> None:
    made = tiny()
    assert made.clips(1) == made.clips(32) == [0]
    assert made.clips(33) == made.clips(56) == [0, 24]
    assert made.clips(57) == [0, 24, 48]
    prepared = made.prepare(film(40))
    assert prepared.shape == (3, 40, 32, 32)
    last = made.clip(prepared, 24)
    assert last.shape == (1, 3, 32, 32, 32)
    assert (last[:, :, 16:] == 0).all()
    assert (last[:, :, :16] != 0).any()
    white = made.scaled(made.pictures(torch.full((2, 3, 90, 50), 255.0)).permute(1, 0, 2, 3))
    np.testing.assert_allclose(white[:, 0, 0, 0], [2.2489, 2.4286, 2.64], atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_a_video_gives_segments_and_a_clip_its_outputs(form: str) -> None:
    made = tiny(form=form, min_probability=0.0, implied=(0, 2))
    found = made.detect(film(50), fps=5.0, duration=10.0)
    assert found.score is not None
    assert len(found) > 0
    assert found.start.min() >= 0
    assert found.end.max() <= 10.0
    assert (np.diff(found.score) <= 0).all()
    raw = made.raw(film(20))
    steps = 16 + 8 + 4 + 2
    assert raw["logits"].shape == {"anchors": (5 * steps, 3), "sigmoid_points": (steps, 3)}.get(form, (steps, 4))
    assert raw["places"].shape == (len(raw["logits"]), 2)
    again = made.detect(film(50), fps=5.0, duration=10.0)
    np.testing.assert_array_equal(found.score, again.score)


@pytest.mark.parametrize("form", FORMS)
def test_a_few_steps_learn_and_leave_the_trunk_s_norms(form: str) -> None:
    made = tiny(form=form).train()
    made.backbone.requires_grad_(False)
    clip = made.clip(made.prepare(film(32)), 0)
    actions = Actions.of([([[3.0, 9.0]], [1])])
    norms = {key: value.clone() for key, value in made.state_dict().items() if "norm" in key or "neck.0" in key}
    descent = torch.optim.Adam([p for p in made.parameters() if p.requires_grad], 5e-3)
    losses = []
    for _ in range(6):
        found = made.loss(made(clip), actions)
        descent.zero_grad()
        found.total.backward()
        descent.step()
        losses.append(found.total.item())
    assert losses[-1] < 0.9 * losses[0]
    still = {key: value for key, value in norms.items() if "norm" in key or "running" in key}
    assert still
    tensors = made.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in still.items())


@pytest.mark.parametrize("form", FORMS)
def test_no_actions_only_background(form: str) -> None:
    made = tiny(form=form).train()
    losses = made.loss(made(made.clip(made.prepare(film(32)), 0)), Actions.of([([], [])]))
    losses.total.backward()
    assert losses.regression.item() == losses.positives.item() == 0
    assert losses.classification.item() > 0
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in made.parameters())


def test_places_that_are_not_moved_are_those_of_a_convolution() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made, x = DeformableConv(4, 6), torch.rand(2, 4, 9)
    with torch.no_grad():
        made.p_conv.bias.zero_()
        made.m_conv.bias.fill_(30.0)  # all of it
    plain = torch.nn.functional.conv1d(x, made.conv.weight, made.conv.bias, padding=1)
    torch.testing.assert_close(made(x), plain)
    with torch.no_grad():
        made.p_conv.bias.fill_(100.0)  # far outside, where there is nothing
    torch.testing.assert_close(made(x), made.conv.bias[:, None].expand(2, -1, 9))


def test_the_gradient_of_a_place_is_the_difference_of_its_neighbours() -> None:
    x = torch.tensor([[[1.0, 4.0, 2.0]]])
    place = torch.tensor([[0.25, 1.5, -0.5, 2.75]], requires_grad=True)
    sampled(x, place).sum().backward()
    assert place.grad is not None
    assert place.grad.tolist() == [[3.0, -2.0, 1.0, -2.0]]


def test_every_action_has_an_anchor_and_the_later_one_the_shared() -> None:
    anchors = make_anchors((8,), 1)
    number, ignored = match_anchors(anchors, Actions.of([([[2.0, 2.1], [3.0, 5.0], [3.0, 5.0]], [0, 1, 2])]))
    found = number[0].tolist()
    assert 0 in found  # though no anchor overlaps it by much
    assert found[20] == 2  # the one around step 4 that fits both
    assert not (ignored & (number >= 0)).any()
    assert (match_anchors(anchors, Actions.of([([], [])]))[0] == -1).all()


def answers(actions: Actions, **changes: Any) -> Any:
    sizes = (16, 8, 4)
    level = torch.cat([torch.full((size,), number) for number, size in enumerate(sizes)])
    stride = 2.0**level
    position = (torch.cat([torch.arange(size) for size in sizes]) + 0.5) * stride
    return point_answers(position, stride, level_ranges(level, 3), actions, **({"edges": False} | changes))


def test_points_answer_by_the_length_of_their_level() -> None:
    made = answers(Actions.of([([[4.0, 7.0]], [1])]))
    assert made.labels[0, :16].tolist() == [BACKGROUND] * 4 + [1] * 3 + [BACKGROUND] * 9
    assert made.labels[0, 18].item() == IGNORED  # at 5, inside, but the ends are too near for its level
    assert made.offsets[0, 4].tolist() == [0.5, 2.5]


def test_a_label_is_that_of_the_action_whose_ends_are_learned() -> None:
    """A coarse point inside a long action and, out of its range, a short one."""
    both = Actions.of([([[0.0, 14.0], [4.0, 8.0]], [1, 2])])
    mended, released = answers(both), answers(both, reproduce_bugs=True)
    assert mended.labels[0, 18].item() == 1
    assert released.labels[0, 18].item() == 2
    assert torch.equal(mended.offsets, released.offsets)
    pair = answers(Actions.of([([[4.0, 8.0], [4.0, 7.0]], [1, 2])]), implied=(1, 2))
    assert pair.labels[0, 5].item() == 1
    assert answers(Actions.of([([[4.5, 7.0]], [1])])).labels[0, 4].item() == BACKGROUND
    assert answers(Actions.of([([[4.5, 7.0]], [1])]), edges=True).labels[0, 4].item() == 1


def test_an_action_that_another_implies_is_left_out() -> None:
    rows = [[1.0, 3.0], [1.0, 3.0], [5.0, 6.0], [1.0, 3.0]]
    actions = without_implied(Actions.of([(rows, [4, 7, 7, 7]), (rows[:2], [7, 4])]), (4, 7))
    assert actions.present.tolist() == [[True, False, True, True], [False, True, False, False]]


def test_overlapping_segments_become_one_within_a_class() -> None:
    segments = [[0.0, 4.0], [1.0, 5.0], [0.0, 4.0], [9.0, 9.0]]
    made, scores, labels = weighted_nms(segments, [0.8, 0.4, 0.5, 0.9], [0, 0, 1, 0], threshold=0.5)
    np.testing.assert_allclose(made, [[9, 9], [0.24 / 1.04, 4 + 0.24 / 1.04], [0, 4]], atol=1e-6)
    np.testing.assert_allclose(scores, [0.9, 0.8, 0.5])
    assert labels.tolist() == [0, 0, 1]
    assert len(weighted_nms(np.zeros((0, 2)), [], [], threshold=0.5)[1]) == 0


def test_implied_classes_count_towards_the_limit() -> None:
    apart = np.array([[0, 1], [2, 3], [4, 5], [6, 7]], np.float32)
    found = Candidates(apart, np.array([0.9, 0.8, 0.7, 0.6], np.float32), np.array([1, 0, 0, 1]))
    kinds: dict[str, Any] = {"form": "sigmoid_points", "implied": (0, 2)}
    assert tiny(**kinds, max_segments=9).suppress(found).labels.tolist() == [1, 0, 2, 0, 2, 1]
    assert tiny(**kinds, max_segments=2).suppress(found).labels.tolist() == [1, 0]
    assert len(tiny(**kinds, max_segments=2, reproduce_bugs=True).suppress(found)) == 6  # 1, then 3: never 2
    assert len(tiny(**kinds, max_segments=3, reproduce_bugs=True).suppress(found)) == 3
    assert len(tiny(max_segments=2).suppress(found)) == 2


def test_times_are_rounded_only_as_the_released_program_does() -> None:
    found = Candidates(
        np.array([[1.1, 7.3], [2.0, 2.1]], np.float32), np.array([0.9, 0.8], np.float32), np.zeros(2, int)
    )
    assert tiny().to_seconds(found, 5.0, 10.0).end.tolist() == pytest.approx([1.46, 0.42])
    rounded = tiny(reproduce_bugs=True).to_seconds(found, 5.0, 10.0)
    assert (rounded.start.tolist(), rounded.end.tolist()) == ([0.2], [1.5])


def test_saved_and_loaded_is_the_same(tmp_path: Any) -> None:
    made = tiny()
    write_weights(made.state_dict(), tmp_path / "a.safetensors")
    again = load_detector("basictad", weights=tmp_path / "a.safetensors", **TINY)
    assert isinstance(again, BasicTAD)
    wanted, found = made.raw(film(20)), again.raw(film(20))
    assert all(np.array_equal(wanted[key], found[key]) for key in wanted)
    with pytest.raises(CheckpointError, match="do not fit basictad"):
        load_detector("basictad", weights=tmp_path / "a.safetensors", **(TINY | {"form": "sigmoid_points"}))


def test_settings_that_cannot_be() -> None:
    for changes, message in (
        ({"input_dim": 2}, "frames of 3 colours, not 2"),
        ({"max_length": 40}, "4 levels need a max_length that is a multiple of 16, not 40"),
        ({"clip_stride": 33}, "clip_stride 33 leaves out frames"),
        ({"form": "sigmoid_points", "dim": 48}, "dim 48 does not divide into the 32 groups"),
        ({"backbone_width": 0.0}, "backbone_width is above 0"),
        ({"threshold": 0.0}, "threshold is above 0"),
        ({"implied": (0, 3)}, "implied is two numbers of its 3 classes"),
        ({"form": "boxes"}, "form"),
        ({"levels": 1}, "levels are from 2"),
    ):
        with pytest.raises(BadValue, match=message):
            tiny(**changes)
