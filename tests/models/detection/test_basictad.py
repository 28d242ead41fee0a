"""BasicTAD: frame sampling, short clips, deformable convolution, anchors and implied classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from helpers.detector_forms import descend, film, small
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
from jostle.models.detection.detector import detectors
from jostle.models.detection.nms import weighted_nms
from jostle.models.detection.outputs import Candidates

FORMS = ("anchors", "sigmoid_points", "softmax_points")


def tiny(**changes: Any) -> BasicTAD:
    detector = small("basictad", **changes)
    assert isinstance(detector, BasicTAD)
    return detector


@pytest.mark.parametrize("name", ["basictad_thumos_afs3", "basictad_thumos_afm6"])
def test_anchor_free_sizes_are_the_published_ones(name: str) -> None:
    variant = detectors[name]
    with torch.device("meta"):
        network = variant.model(variant.config())
    assert round(sum(p.numel() for p in network.parameters()) / 1e6, 1) == 132.5


def test_sampled_frame_indices() -> None:
    """Sampling follows the filter `fps` of FFmpeg: from 25 fps every third frame of five, from 2.5 fps some twice."""
    detector = tiny()
    indices, rate = detector.sample_indices(15, 25.0)
    assert (indices.tolist(), rate) == ([2, 7, 12], 5.0)
    assert detector.sample_indices(4, 5.0)[0].tolist() == [0, 1, 2, 3]
    indices, rate = detector.sample_indices(4, 2.5)
    assert (indices.tolist(), rate) == ([0, 0, 1, 1, 2, 2, 3, 3], 5.0)
    assert detector.sample_indices(1, 30.0)[0].tolist() == [0]  # shorter than one sampled frame
    assert tiny(fps=None).sample_indices(64, 24.0)[1] == 12.0


def test_clips_are_evenly_spaced_and_the_last_may_be_short() -> None:
    detector = tiny()
    assert detector.clips(1) == detector.clips(32) == [0]
    assert detector.clips(33) == detector.clips(56) == [0, 24]
    assert detector.clips(57) == [0, 24, 48]
    prepared = detector.prepare(film(40))
    assert prepared.shape == (3, 40, 32, 32)
    last = detector.clip(prepared, 24)
    assert last.shape == (1, 3, 32, 32, 32)
    assert (last[:, :, 16:] == 0).all()
    assert (last[:, :, :16] != 0).any()
    white = detector.scaled(detector.pictures(torch.full((2, 3, 90, 50), 255.0)).permute(1, 0, 2, 3))
    np.testing.assert_allclose(white[:, 0, 0, 0], [2.2489, 2.4286, 2.64], atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_shapes_of_outputs(form: str) -> None:
    raw = tiny(form=form, min_probability=0.0, implied=(0, 2)).raw(film(20))
    steps = 16 + 8 + 4 + 2
    assert raw["logits"].shape == {"anchors": (5 * steps, 3), "sigmoid_points": (steps, 3)}.get(form, (steps, 4))
    assert raw["places"].shape == (len(raw["logits"]), 2)


@pytest.mark.parametrize("form", FORMS)
def test_training_reduces_the_loss_and_keeps_the_backbone_norms(form: str) -> None:
    detector = tiny(form=form).train()
    detector.backbone.requires_grad_(False)
    clip = detector.clip(detector.prepare(film(32)), 0)
    actions = Actions.of([([[3.0, 9.0]], [1])])
    norms = {key: value.clone() for key, value in detector.state_dict().items() if "norm" in key or "neck.0" in key}
    losses = descend(detector, (clip,), actions, lr=5e-3, steps=6)
    assert losses[-1].total < 0.9 * losses[0].total
    still = {key: value for key, value in norms.items() if "norm" in key or "running" in key}
    assert still
    tensors = detector.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in still.items())


def test_deformable_conv_without_offsets_equals_a_convolution() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer, x = DeformableConv(4, 6), torch.rand(2, 4, 9)
    with torch.no_grad():
        layer.p_conv.bias.zero_()
        layer.m_conv.bias.fill_(30.0)  # all of it
    plain = torch.nn.functional.conv1d(x, layer.conv.weight, layer.conv.bias, padding=1)
    torch.testing.assert_close(layer(x), plain)
    with torch.no_grad():
        layer.p_conv.bias.fill_(100.0)  # far outside, where there is nothing
    torch.testing.assert_close(layer(x), layer.conv.bias[:, None].expand(2, -1, 9))


def test_offset_gradient_is_the_difference_of_neighbours() -> None:
    x = torch.tensor([[[1.0, 4.0, 2.0]]])
    position = torch.tensor([[0.25, 1.5, -0.5, 2.75]], requires_grad=True)
    sampled(x, position).sum().backward()
    assert position.grad is not None
    assert position.grad.tolist() == [[3.0, -2.0, 1.0, -2.0]]


def test_every_action_has_an_anchor_and_later_ones_win_ties() -> None:
    anchors = make_anchors((8,), 1)
    number, ignored = match_anchors(anchors, Actions.of([([[2.0, 2.1], [3.0, 5.0], [3.0, 5.0]], [0, 1, 2])]))
    assigned = number[0].tolist()
    assert 0 in assigned  # though no anchor overlaps it by much
    assert assigned[20] == 2  # the one around step 4 that fits both
    assert not (ignored & (number >= 0)).any()
    assert (match_anchors(anchors, Actions.of([([], [])]))[0] == -1).all()


def targets_of(actions: Actions, **changes: Any) -> Any:
    sizes = (16, 8, 4)
    level = torch.cat([torch.full((size,), number) for number, size in enumerate(sizes)])
    stride = 2.0**level
    position = (torch.cat([torch.arange(size) for size in sizes]) + 0.5) * stride
    return point_answers(position, stride, level_ranges(level, 3), actions, **({"edges": False} | changes))


def test_points_are_assigned_by_the_length_range_of_their_level() -> None:
    targets = targets_of(Actions.of([([[4.0, 7.0]], [1])]))
    assert targets.labels[0, :16].tolist() == [BACKGROUND] * 4 + [1] * 3 + [BACKGROUND] * 9
    assert targets.labels[0, 18].item() == IGNORED  # at 5, inside, but the ends are too near for its level
    assert targets.offsets[0, 4].tolist() == [0.5, 2.5]


def test_label_and_ends_belong_to_the_same_action() -> None:
    """A coarse point lies inside a long action and a short one that is outside its range."""
    both = Actions.of([([[0.0, 14.0], [4.0, 8.0]], [1, 2])])
    mended, released = targets_of(both), targets_of(both, reproduce_bugs=True)
    assert mended.labels[0, 18].item() == 1
    assert released.labels[0, 18].item() == 2
    assert torch.equal(mended.offsets, released.offsets)
    pair = targets_of(Actions.of([([[4.0, 8.0], [4.0, 7.0]], [1, 2])]), implied=(1, 2))
    assert pair.labels[0, 5].item() == 1
    assert targets_of(Actions.of([([[4.5, 7.0]], [1])])).labels[0, 4].item() == BACKGROUND
    assert targets_of(Actions.of([([[4.5, 7.0]], [1])]), edges=True).labels[0, 4].item() == 1


def test_implied_actions_are_left_out() -> None:
    rows = [[1.0, 3.0], [1.0, 3.0], [5.0, 6.0], [1.0, 3.0]]
    actions = without_implied(Actions.of([(rows, [4, 7, 7, 7]), (rows[:2], [7, 4])]), (4, 7))
    assert actions.present.tolist() == [[True, False, True, True], [False, True, False, False]]


def test_weighted_nms_merges_overlapping_segments_of_a_class() -> None:
    segments = [[0.0, 4.0], [1.0, 5.0], [0.0, 4.0], [9.0, 9.0]]
    merged, scores, labels = weighted_nms(segments, [0.8, 0.4, 0.5, 0.9], [0, 0, 1, 0], threshold=0.5)
    np.testing.assert_allclose(merged, [[9, 9], [0.24 / 1.04, 4 + 0.24 / 1.04], [0, 4]], atol=1e-6)
    np.testing.assert_allclose(scores, [0.9, 0.8, 0.5])
    assert labels.tolist() == [0, 0, 1]
    assert len(weighted_nms(np.zeros((0, 2)), [], [], threshold=0.5)[1]) == 0


def test_implied_classes_count_towards_max_segments() -> None:
    apart = np.array([[0, 1], [2, 3], [4, 5], [6, 7]], np.float32)
    candidates = Candidates(apart, np.array([0.9, 0.8, 0.7, 0.6], np.float32), np.array([1, 0, 0, 1]))
    kinds: dict[str, Any] = {"form": "sigmoid_points", "implied": (0, 2)}
    assert tiny(**kinds, max_segments=9).suppress(candidates).labels.tolist() == [1, 0, 2, 0, 2, 1]
    assert tiny(**kinds, max_segments=2).suppress(candidates).labels.tolist() == [1, 0]
    assert len(tiny(**kinds, max_segments=2, reproduce_bugs=True).suppress(candidates)) == 6  # 1, then 3: never 2
    assert len(tiny(**kinds, max_segments=3, reproduce_bugs=True).suppress(candidates)) == 3
    assert len(tiny(max_segments=2).suppress(candidates)) == 2


def test_times_are_rounded_only_with_reproduce_bugs() -> None:
    candidates = Candidates(
        np.array([[1.1, 7.3], [2.0, 2.1]], np.float32), np.array([0.9, 0.8], np.float32), np.zeros(2, int)
    )
    assert tiny().to_seconds(candidates, 5.0, 10.0).end.tolist() == pytest.approx([1.46, 0.42])
    rounded = tiny(reproduce_bugs=True).to_seconds(candidates, 5.0, 10.0)
    assert (rounded.start.tolist(), rounded.end.tolist()) == ([0.2], [1.5])
