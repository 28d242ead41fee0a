"""E2E-TAD: deformable attention, one query per action, overlapping clips and grey padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from helpers.detector_forms import descend, film, small
from jostle.errors import NonFiniteOutput
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.e2e_tad import DeformableAttention, assign_queries, mixtures, overlap, roi_align
from jostle.models.detection.blocks.trunks import FixedNorms, ShiftTrunk, SlowFastTrunk
from jostle.models.detection.detector import detectors
from jostle.models.detection.e2e_tad import E2ETAD, E2eTadOutputs
from jostle.models.detection.nms import overlap_nms
from jostle.models.detection.outputs import Candidates
from jostle.models.preprocessing.geometry import resize_by_factor

TRUNKS = ("slowfast", "tsm18", "tsm50")


def tiny(**changes: Any) -> E2ETAD:
    detector = small("e2e_tad", **changes)
    assert isinstance(detector, E2ETAD)
    return detector


def random_tensor(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def test_puppet_weights_are_small_enough_to_ship() -> None:
    with torch.device("meta"):
        network = detectors["e2e_tad_puppets"].model(detectors["e2e_tad_puppets"].config())
    shipped = sum(2 * x.numel() for x in network.state_dict().values())  # in half precision
    assert shipped < 3_000_000


def test_clips_are_evenly_spaced_and_the_last_is_padded_with_grey() -> None:
    detector = tiny()
    assert detector.clips(1) == detector.clips(16) == [0]
    assert detector.clips(17) == detector.clips(28) == [0, 12]
    assert detector.sample_indices(15, 25.0)[0].tolist() == [2, 7, 12]
    assert tiny(fps=None).sample_indices(32, 24.0)[1] == 12.0
    prepared = detector.prepare(film(20))
    assert prepared.shape == (3, 20, 32, 32)
    last = detector.clip(prepared, 12)
    assert last.shape == (1, 3, 16, 32, 32)
    grey = torch.tensor([(128 - 123.675) / 58.395, (128 - 116.28) / 57.12, (128 - 103.53) / 57.375])
    torch.testing.assert_close(last[0, :, 8:], grey[:, None, None, None].expand(-1, 8, 32, 32))
    torch.testing.assert_close(last[0, :, :4], detector.clip(prepared, 0)[0, :, 12:])


@pytest.mark.parametrize("backbone", TRUNKS)
def test_shapes_of_outputs(backbone: str) -> None:
    raw = tiny(backbone=backbone).raw(film(12))
    assert {name: value.shape for name, value in raw.items()} == {
        "logits": (2, 6, 3), "segments": (2, 6, 2), "actionness": (6,),
    }  # fmt: skip


@pytest.mark.parametrize("backbone", TRUNKS)
def test_clips_of_a_batch_are_independent(backbone: str) -> None:
    detector, prepared = tiny(backbone=backbone), tiny().prepare(film(32))
    clips = torch.cat([detector.clip(prepared, first) for first in (0, 16)])
    with torch.inference_mode():
        both, alone = detector(clips), [detector(clip[None]) for clip in clips]
    for name in ("logits", "segments", "actionness"):
        each = torch.cat([getattr(outputs, name) for outputs in alone])
        torch.testing.assert_close(getattr(both, name), each, atol=1e-5, rtol=1e-5)


def test_transformer_ignores_padding() -> None:
    detector, clips = tiny(), random_tensor(2, 3, 16, 32, 32)
    padded = torch.zeros(2, 16, dtype=torch.bool)
    padded[1, 9:] = True
    with torch.inference_mode():
        features = detector.features_of(clips)
        changed = features.clone()
        changed[1, 9:] += 5
        first, second = (detector.transformer.encode(x, padded) for x in (features, changed))
        torch.testing.assert_close(first[:, :9], second[:, :9])
        second[0], second[1, :9] = first[0], first[1, :9]
        torch.testing.assert_close(detector.answers(first, padded).logits, detector.answers(second, padded).logits)
        unmasked, masked = detector(clips).logits, detector(clips, padded).logits
    torch.testing.assert_close(unmasked[0], masked[0])
    assert not torch.allclose(unmasked[1], masked[1], atol=1e-4)


@pytest.mark.parametrize("reproduce_bugs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_training_reduces_the_loss_and_keeps_the_backbone_norms(reproduce_bugs: bool) -> None:
    detector = tiny(reproduce_bugs=reproduce_bugs).train()
    clips = torch.cat([detector.clip(detector.prepare(film(32)), first) for first in (0, 16)])
    actions = Actions.of([([[3.0, 9.0]], [1]), ([[1.0, 4.0], [8.0, 15.0]], [0, 2])])
    norms = {key: value.clone() for key, value in detector.state_dict().items() if "backbone" in key and ".bn" in key}
    losses = descend(detector, (clips,), actions, lr=2e-3, steps=8)
    assert losses[-1].total < 0.8 * losses[0].total
    assert losses[-1].positives.item() == 3
    assert set(losses[-1].others) == {
        "iou", "actionness", "classification_0", "regression_0", "iou_0",
    }  # fmt: skip
    assert norms
    tensors = detector.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in norms.items())


def test_backbone_norms_are_trained_unless_fixed() -> None:
    for fixed in (True, False):
        detector = tiny(fixed_norms=fixed).train()
        norms = {key: value.clone() for key, value in detector.backbone.state_dict().items() if "bn1" in key}
        detector(random_tensor(2, 3, 16, 32, 32))
        tensors = detector.backbone.state_dict()
        moved = {key for key, value in norms.items() if not torch.equal(value, tensors[key])}
        assert any("running_mean" in key for key in moved) is not fixed
        assert detector.get_parameter("backbone.backbone.bn1.weight").requires_grad is not fixed
    assert detectors["e2e_tad_puppets"].config().fixed_norms is False  # type: ignore[attr-defined]
    assert detectors["e2e_tad_thumos_slowfast"].config().fixed_norms is True  # type: ignore[attr-defined]


def test_every_parameter_has_a_gradient_in_the_first_step() -> None:
    """Initial positions are whole steps, where the gradient is the slope towards the next step, not 0."""
    detector = tiny().train()
    detector.loss(
        detector(random_tensor(2, 3, 16, 32, 32)), Actions.of([([[3.0, 9.0]], [1]), ([[1.0, 4.0]], [0])])
    ).total.backward()
    still = {key for key, p in detector.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())}
    # Only the last layer of each `segment_embed` has a gradient at first, as it is initialised with 0.
    assert {key for key in still if "sampling_offsets" in key and "encoder" in key} == set()
    assert all("layers.0" in key or "layers.1" in key for key in still if key.startswith("segment_embed"))


def test_nan_weights_give_a_nan_loss_and_detect_raises() -> None:
    detector, clips = tiny(), random_tensor(1, 3, 16, 32, 32)
    with torch.no_grad():
        detector.get_parameter("transformer.encoder.layers.0.norm2.weight").fill_(torch.nan)
        outputs = detector(clips)
    assert outputs.actionness.isnan().all()
    assert outputs.logits.isnan().all()
    assert detector.loss(outputs, Actions.of([([[3.0, 9.0]], [1])])).total.isnan()
    with pytest.raises(NonFiniteOutput, match="36 of 36 values of its output 'logits' are not finite"):
        detector.detect(film(16), fps=5.0, duration=3.2)


def test_losses_of_processes_add_up() -> None:
    """The losses of two processes with a clip each and shared counts add up to the loss of the batch."""
    detector, clips = tiny(), random_tensor(2, 3, 16, 32, 32)
    rows = [([[3.0, 9.0]], [1]), ([[1.0, 4.0], [8.0, 15.0]], [0, 2])]
    with torch.no_grad():
        outputs = detector(clips)
        batch_loss = detector.loss(outputs, Actions.of(rows)).total.item()
        counts = {1: 3, 2: 3, 6: 12}  # actions of one clip and of the other; queries
        detector.positives_of_all = lambda count: torch.tensor(counts[int(count)])
        parts = 0.0
        for i in (0, 1):
            clip_outputs = E2eTadOutputs(
                outputs.logits[i : i + 1], outputs.segments[i : i + 1], outputs.actionness[i : i + 1]
            )
            parts += detector.loss(clip_outputs, Actions.of(rows[i : i + 1])).total.item()
    assert parts == pytest.approx(batch_loss, rel=1e-5)


def test_queries_are_assigned_one_to_one() -> None:
    logits = torch.full((1, 1, 3, 2), -4.0)
    logits[0, 0, 1, 1] = 4.0
    segments = torch.tensor([[[[0.3, 0.2], [0.3, 0.25], [0.8, 0.1]]]])
    actions = Actions.of([([[0.2, 0.4], [0.2, 0.4]], [1, 0])])
    assert assign_queries(logits, segments, actions).tolist() == [[[1, 0, -1]]]
    more = Actions.of([([[0.1 * i, 0.1 * i + 0.1] for i in range(5)], [0] * 5)])
    assert (assign_queries(logits, segments, more) >= 0).all()  # more actions than queries: some stay unassigned
    lost = assign_queries(torch.full_like(logits, torch.nan), segments, actions)
    assert (lost >= 0).sum() == 2  # the loss will be NaN
    assert assign_queries(logits, segments, Actions.of([([], [])])).tolist() == [[[-1, -1, -1]]]
    assert overlap(torch.zeros(2), torch.zeros(2)).item() == 0


def interpolate_at(x: torch.Tensor, position: float) -> torch.Tensor:
    """Return (T, C) features interpolated linearly at a position."""
    before = int(np.floor(position))
    result = torch.zeros(x.shape[1])
    for step, weight in ((before, before + 1 - position), (before + 1, position - before)):
        if 0 <= step < len(x):
            result = result + weight * x[step]
    return result


def test_mixtures_equal_a_loop_over_positions() -> None:
    x, position, weight = random_tensor(5, 3), random_tensor(4, 6) * 9 - 2, random_tensor(4, 6)
    mixed = mixtures(position, weight, 5) @ x
    for row in range(4):
        expected = sum(
            w * interpolate_at(x, p) for p, w in zip(position[row].tolist(), weight[row].tolist(), strict=True)
        )
        torch.testing.assert_close(mixed[row], expected)
    positions = torch.tensor([1.0, -0.5, 4.25, 7.0, -1e9, 1e9], requires_grad=True)
    values = torch.tensor([[1.0], [4.0], [2.0], [0.0], [8.0]])
    (mixtures(positions[:, None], torch.ones(6, 1), 5) @ values).sum().backward()
    assert positions.grad is not None
    assert positions.grad.tolist() == [-2.0, 1.0, -8.0, 0.0, 0.0, 0.0]


def test_deformable_attention_samples_at_its_offsets() -> None:
    attention = DeformableAttention(8, 2, 2)
    with torch.no_grad():
        attention.sampling_offsets.bias.zero_()
        attention.value_proj.weight.copy_(torch.eye(8))
        attention.output_proj.weight.copy_(torch.eye(8))
        source = random_tensor(1, 6, 8)
        middles = (torch.arange(6) + 0.5)[None, :, None] / 6
        torch.testing.assert_close(attention(source, middles, source), source)  # every step attends to itself
        attention.sampling_offsets.bias.fill_(1.0)
        torch.testing.assert_close(attention(source, middles, source)[:, :-1], source[:, 1:])
        wide = torch.tensor([[[0.5, 4 / 6]]])  # width 4: the offset of one of two points is half of half the width
        torch.testing.assert_close(attention(source[:, :1], wide, source)[0, 0], interpolate_at(source[0], 2.5 + 1.0))


def test_bfloat16_is_close_to_float32() -> None:
    detector = tiny()
    expected, actual = detector.raw(film(16)), tiny(precision="bfloat16").raw(film(16))
    assert actual["segments"].dtype == np.float32
    np.testing.assert_allclose(actual["segments"], expected["segments"], atol=0.02)
    assert not np.array_equal(actual["logits"], expected["logits"])


def test_roi_align() -> None:
    x = torch.arange(10.0)[None, :, None]
    regions = torch.tensor([[[2.0, 2.0], [0.0, 10.0], [9.0, 10.0]]])
    pooled = roi_align(x, regions, 4)[0, :, 0]
    torch.testing.assert_close(pooled[0], torch.tensor([2.125, 2.375, 2.625, 2.875]))  # treated as one step long
    torch.testing.assert_close(pooled[1, :3], torch.tensor([1.25, 3.75, 6.25]))
    torch.testing.assert_close(pooled[2], torch.full((4,), 9.0))  # between the last step and the end: the last step
    assert roi_align(x, torch.zeros(1, 0, 2), 4).shape == (1, 0, 1, 4)


def test_backbone_output_shapes_and_receptive_fields() -> None:
    slow = SlowFastTrunk(0.125)
    assert slow(random_tensor(1, 3, 16, 32, 32)).shape == (1, slow.out, 4)
    for layers in (18, 50):
        shift = ShiftTrunk(layers, 0.125).eval()  # type: ignore[arg-type]
        clip = random_tensor(1, 3, 24, 32, 32)
        with torch.no_grad():
            features = shift(clip)
            assert features.shape == (1, shift.out, 24)
            clip[:, :, 0] += 1
            again = shift(clip)
        blocks = 8 if layers == 18 else 16
        assert not torch.equal(features[..., 1], again[..., 1])
        assert torch.equal(features[..., blocks + 1 :], again[..., blocks + 1 :])
    assert isinstance(shift, FixedNorms)


def test_overlap_nms_suppresses_only_where_clips_overlap() -> None:
    rows = np.array([[10, 15], [10, 15.5], [2, 4], [2, 4.1], [11, 30]], np.float32)
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5], np.float32)
    labels = np.array([0, 0, 1, 1, 2])
    indices = overlap_nms(rows, scores, labels, [(12, 16), (24, 28)], threshold=0.4)
    assert indices.tolist() == [0, 4, 2, 3]
    duplicated = overlap_nms(rows, scores, labels, [(12, 16), (24, 28)], threshold=0.4, reproduce_bugs=True)
    assert duplicated.tolist() == [0, 4, 4, 2, 3]
    other = overlap_nms(rows, scores, [0, 1, 0, 1, 2], [(12, 16)], threshold=0.4)
    assert sorted(other.tolist()) == [0, 1, 2, 3, 4]  # of other classes
    assert overlap_nms(np.zeros((0, 2)), [], [], [(12, 16)], threshold=0.4).tolist() == []
    candidates = Candidates(rows[:2], scores[:2], labels[:2])
    detector = tiny(max_segments=1)
    assert len(detector.suppress(detector.merge_clips([(0, candidates)], 16))) == 1
    assert len(tiny().merge_clips([(0, candidates)], 16)) == 2  # one clip, no overlap
    assert len(tiny().merge_clips([(0, candidates), (12, candidates)], 28)) == 3


def test_decode_takes_the_best_pairs_of_query_and_class() -> None:
    detector = tiny(top_candidates=4, min_probability=0.1)
    logits = torch.full((1, 2, 6, 3), -9.0)
    logits[0, -1, 0] = torch.tensor([3.0, 2.0, -3.0])
    logits[0, -1, 5, 2] = 1.0
    logits[0, 0] = 9.0  # the layer before, which is ignored
    segments = torch.tensor([0.5, 0.25]).expand(1, 2, 6, 2)
    (candidates,) = detector.decode(E2eTadOutputs(logits, segments, torch.full((1, 6), 0.5)))
    np.testing.assert_allclose(candidates.scores, 0.5 / (1 + np.exp([-3.0, -2.0, -1.0])), rtol=1e-6)
    assert candidates.labels.tolist() == [0, 1, 2]
    np.testing.assert_allclose(candidates.segments, [[6, 10]] * 3)
    assert len(tiny(top_candidates=4).decode(E2eTadOutputs(logits, segments, torch.ones(1, 6)))[0]) == 4


def test_resize_by_factor_rounds_sizes_but_not_positions() -> None:
    picture = torch.arange(7.0).expand(1, 1, 5, 7)
    resized = resize_by_factor(picture, 0.5)
    assert resized.shape == (1, 1, 2, 4)  # 2.5 and 3.5, to the even number
    assert resized[0, 0, 0].tolist() == [0.5, 2.5, 4.5, 6.0]
    assert torch.equal(resize_by_factor(picture, 1.0), picture)
