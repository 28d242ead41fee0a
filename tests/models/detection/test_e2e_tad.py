"""What E2E-TAD has of its own: attention at places, one query an action, clips that overlap, grey behind the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from jostle.errors import BadValue, CheckpointError, NonFiniteOutput
from jostle.models.checkpoints import write_weights
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.e2e_tad import DeformableAttention, assign_queries, mixtures, overlap, roi_align
from jostle.models.detection.blocks.trunks import FixedNorms, ShiftTrunk, SlowFastTrunk
from jostle.models.detection.detector import detectors, load_detector
from jostle.models.detection.e2e_tad import E2ETAD, E2eTadOutputs
from jostle.models.detection.nms import overlap_nms
from jostle.models.detection.outputs import Candidates
from jostle.models.preprocessing.geometry import resize_by_factor

TRUNKS = ("slowfast", "tsm18", "tsm50")
TINY: dict[str, Any] = {
    "dim": 32, "classes": 3, "max_length": 16, "frame_size": 40, "crop": 32, "clip_stride": 12, "fps": 5.0,
    "backbone": "tsm18", "backbone_width": 0.125, "heads": 4, "points": 2, "encoder_layers": 1, "decoder_layers": 2,
    "mlp_dim": 16, "queries": 6, "dropout": 0.0,
}  # fmt: skip


def tiny(**changes: Any) -> E2ETAD:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = load_detector("e2e_tad", **(TINY | changes))
    assert isinstance(made, E2ETAD)
    return made


def film(count: int, size: tuple[int, int] = (48, 64)) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, *size, 3), dtype=np.uint8)


def drawn(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def test_the_small_one_is_small_enough_to_ship() -> None:
    with torch.device("meta"):
        made = detectors["e2e_tad_puppets"].model(detectors["e2e_tad_puppets"].config())
    shipped = sum(2 * x.numel() for x in made.state_dict().values())  # in half precision
    assert shipped < 3_000_000


def test_clips_are_equally_far_apart_and_the_last_ends_in_grey() -> None:
    made = tiny()
    assert made.clips(1) == made.clips(16) == [0]
    assert made.clips(17) == made.clips(28) == [0, 12]
    assert made.sample_indices(15, 25.0)[0].tolist() == [2, 7, 12]
    assert tiny(fps=None).sample_indices(32, 24.0)[1] == 12.0
    prepared = made.prepare(film(20))
    assert prepared.shape == (3, 20, 32, 32)
    last = made.clip(prepared, 12)
    assert last.shape == (1, 3, 16, 32, 32)
    grey = torch.tensor([(128 - 123.675) / 58.395, (128 - 116.28) / 57.12, (128 - 103.53) / 57.375])
    torch.testing.assert_close(last[0, :, 8:], grey[:, None, None, None].expand(-1, 8, 32, 32))
    torch.testing.assert_close(last[0, :, :4], made.clip(prepared, 0)[0, :, 12:])


@pytest.mark.parametrize("backbone", TRUNKS)
def test_a_video_gives_segments_and_a_clip_its_outputs(backbone: str) -> None:
    made = tiny(backbone=backbone)
    found = made.detect(film(50), fps=5.0, duration=10.0)
    assert found.score is not None
    assert len(found) > 0
    assert found.start.min() >= 0
    assert found.end.max() <= 10.0
    assert (np.diff(found.score) <= 0).all()
    raw = made.raw(film(12))
    assert {name: value.shape for name, value in raw.items()} == {
        "logits": (2, 6, 3), "segments": (2, 6, 2), "actionness": (6,),
    }  # fmt: skip
    again = made.detect(film(50), fps=5.0, duration=10.0)
    np.testing.assert_array_equal(found.score, again.score)


@pytest.mark.parametrize("backbone", TRUNKS)
def test_clips_of_a_batch_are_seen_each_for_itself(backbone: str) -> None:
    made, prepared = tiny(backbone=backbone), tiny().prepare(film(32))
    clips = torch.cat([made.clip(prepared, first) for first in (0, 16)])
    with torch.inference_mode():
        both, alone = made(clips), [made(clip[None]) for clip in clips]
    for name in ("logits", "segments", "actionness"):
        each = torch.cat([getattr(outputs, name) for outputs in alone])
        torch.testing.assert_close(getattr(both, name), each, atol=1e-5, rtol=1e-5)


def test_the_transformer_does_not_look_at_what_holds_nothing() -> None:
    made, clips = tiny(), drawn(2, 3, 16, 32, 32)
    padded = torch.zeros(2, 16, dtype=torch.bool)
    padded[1, 9:] = True
    with torch.inference_mode():
        features = made.features_of(clips)
        changed = features.clone()
        changed[1, 9:] += 5
        first, second = (made.transformer.encode(x, padded) for x in (features, changed))
        torch.testing.assert_close(first[:, :9], second[:, :9])
        second[0], second[1, :9] = first[0], first[1, :9]
        torch.testing.assert_close(made.answers(first, padded).logits, made.answers(second, padded).logits)
        all_of_it, marked = made(clips).logits, made(clips, padded).logits
    torch.testing.assert_close(all_of_it[0], marked[0])
    assert not torch.allclose(all_of_it[1], marked[1], atol=1e-4)


@pytest.mark.parametrize("reproduce_bugs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_few_steps_learn_and_leave_the_trunk_s_norms(reproduce_bugs: bool) -> None:
    made = tiny(reproduce_bugs=reproduce_bugs).train()
    clips = torch.cat([made.clip(made.prepare(film(32)), first) for first in (0, 16)])
    actions = Actions.of([([[3.0, 9.0]], [1]), ([[1.0, 4.0], [8.0, 15.0]], [0, 2])])
    norms = {key: value.clone() for key, value in made.state_dict().items() if "backbone" in key and ".bn" in key}
    descent = torch.optim.AdamW([p for p in made.parameters() if p.requires_grad], 2e-3)
    losses = []
    for _ in range(8):
        found = made.loss(made(clips), actions)
        descent.zero_grad()
        found.total.backward()
        descent.step()
        losses.append(found.total.item())
    assert losses[-1] < 0.8 * losses[0]
    assert found.positives.item() == 3
    assert set(found.others) == {
        "iou", "actionness", "classification_0", "regression_0", "iou_0",
    }  # fmt: skip
    assert norms
    tensors = made.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in norms.items())


def test_norms_are_learned_where_nobody_has_learned_them_before() -> None:
    for fixed in (True, False):
        made = tiny(fixed_norms=fixed).train()
        norms = {key: value.clone() for key, value in made.backbone.state_dict().items() if "bn1" in key}
        made(drawn(2, 3, 16, 32, 32))
        tensors = made.backbone.state_dict()
        moved = {key for key, value in norms.items() if not torch.equal(value, tensors[key])}
        assert any("running_mean" in key for key in moved) is not fixed
        assert made.get_parameter("backbone.backbone.bn1.weight").requires_grad is not fixed
    assert detectors["e2e_tad_puppets"].config().fixed_norms is False  # type: ignore[attr-defined]
    assert detectors["e2e_tad_thumos_slowfast"].config().fixed_norms is True  # type: ignore[attr-defined]


def test_every_part_learns_from_the_first_step_on() -> None:
    """Places begin at whole steps, where the slope of a mixture is that towards the later one, not 0."""
    made = tiny().train()
    made.loss(made(drawn(2, 3, 16, 32, 32)), Actions.of([([[3.0, 9.0]], [1]), ([[1.0, 4.0]], [0])])).total.backward()
    still = {key for key, p in made.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())}
    # Segments are said anew until the last map of each `segment_embed`, which begins at 0, has moved.
    assert {key for key in still if "sampling_offsets" in key and "encoder" in key} == set()
    assert all("layers.0" in key or "layers.1" in key for key in still if key.startswith("segment_embed"))


def test_no_actions_only_background() -> None:
    made = tiny().train()
    losses = made.loss(made(drawn(2, 3, 16, 32, 32)), Actions.of([([], []), ([], [])]))
    losses.total.backward()
    assert losses.regression.item() == losses.positives.item() == losses.others["iou"].item() == 0
    assert losses.classification.item() > 0
    assert losses.others["actionness"].item() > 0  # that nothing is an action is learned too
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in made.parameters())


def test_a_network_that_has_lost_its_numbers_says_so_by_its_loss() -> None:
    made, clips = tiny(), drawn(1, 3, 16, 32, 32)
    with torch.no_grad():
        made.get_parameter("transformer.encoder.layers.0.norm2.weight").fill_(torch.nan)
        outputs = made(clips)
    assert outputs.actionness.isnan().all()
    assert outputs.logits.isnan().all()
    assert made.loss(outputs, Actions.of([([[3.0, 9.0]], [1])])).total.isnan()
    with pytest.raises(NonFiniteOutput, match="36 of 36 values of its output 'logits' are not finite"):
        made.detect(film(16), fps=5.0, duration=3.2)


def test_shares_of_a_batch_add_up() -> None:
    """Two processes with a clip each, which count together, have the loss of both between them."""
    made, clips = tiny(), drawn(2, 3, 16, 32, 32)
    rows = [([[3.0, 9.0]], [1]), ([[1.0, 4.0], [8.0, 15.0]], [0, 2])]
    with torch.no_grad():
        outputs = made(clips)
        whole = made.loss(outputs, Actions.of(rows)).total.item()
        counts = {1: 3, 2: 3, 6: 12}  # actions of one clip and of the other; queries
        made.positives_of_all = lambda count: torch.tensor(counts[int(count)])
        parts = 0.0
        for i in (0, 1):
            one = E2eTadOutputs(outputs.logits[i : i + 1], outputs.segments[i : i + 1], outputs.actionness[i : i + 1])
            parts += made.loss(one, Actions.of(rows[i : i + 1])).total.item()
    assert parts == pytest.approx(whole, rel=1e-5)


def test_one_query_for_each_action() -> None:
    logits = torch.full((1, 1, 3, 2), -4.0)
    logits[0, 0, 1, 1] = 4.0
    segments = torch.tensor([[[[0.3, 0.2], [0.3, 0.25], [0.8, 0.1]]]])
    actions = Actions.of([([[0.2, 0.4], [0.2, 0.4]], [1, 0])])
    assert assign_queries(logits, segments, actions).tolist() == [[[1, 0, -1]]]
    more = Actions.of([([[0.1 * i, 0.1 * i + 0.1] for i in range(5)], [0] * 5)])
    assert (assign_queries(logits, segments, more) >= 0).all()  # more actions than queries: some are left
    lost = assign_queries(torch.full_like(logits, torch.nan), segments, actions)
    assert (lost >= 0).sum() == 2  # the loss will say that numbers are lost
    assert assign_queries(logits, segments, Actions.of([([], [])])).tolist() == [[[-1, -1, -1]]]
    assert overlap(torch.zeros(2), torch.zeros(2)).item() == 0


def plain(x: torch.Tensor, place: float) -> torch.Tensor:
    """What is seen at a place of (T, C)."""
    before = int(np.floor(place))
    made = torch.zeros(x.shape[1])
    for step, share in ((before, before + 1 - place), (before + 1, place - before)):
        if 0 <= step < len(x):
            made = made + share * x[step]
    return made


def test_mixtures_are_what_a_loop_over_places_sees() -> None:
    x, place, weight = drawn(5, 3), drawn(4, 6) * 9 - 2, drawn(4, 6)
    made = mixtures(place, weight, 5) @ x
    for row in range(4):
        seen = sum(w * plain(x, p) for p, w in zip(place[row].tolist(), weight[row].tolist(), strict=True))
        torch.testing.assert_close(made[row], seen)
    at = torch.tensor([1.0, -0.5, 4.25, 7.0, -1e9, 1e9], requires_grad=True)
    values = torch.tensor([[1.0], [4.0], [2.0], [0.0], [8.0]])
    (mixtures(at[:, None], torch.ones(6, 1), 5) @ values).sum().backward()
    assert at.grad is not None
    assert at.grad.tolist() == [-2.0, 1.0, -8.0, 0.0, 0.0, 0.0]


def test_attention_looks_where_it_is_told() -> None:
    made = DeformableAttention(8, 2, 2)
    with torch.no_grad():
        made.sampling_offsets.bias.zero_()
        made.value_proj.weight.copy_(torch.eye(8))
        made.output_proj.weight.copy_(torch.eye(8))
        source = drawn(1, 6, 8)
        middles = (torch.arange(6) + 0.5)[None, :, None] / 6
        torch.testing.assert_close(made(source, middles, source), source)  # each step sees itself
        made.sampling_offsets.bias.fill_(1.0)
        torch.testing.assert_close(made(source, middles, source)[:, :-1], source[:, 1:])
        wide = torch.tensor([[[0.5, 4 / 6]]])  # of width 4: one of two points is half of half of it
        torch.testing.assert_close(made(source[:, :1], wide, source)[0, 0], plain(source[0], 2.5 + 1.0))


def test_attention_in_fewer_digits_is_nearly_the_same() -> None:
    made = tiny()
    wanted, found = made.raw(film(16)), tiny(precision="bfloat16").raw(film(16))
    assert found["segments"].dtype == np.float32
    np.testing.assert_allclose(found["segments"], wanted["segments"], atol=0.02)
    assert not np.array_equal(found["logits"], wanted["logits"])


def test_parts_of_a_region() -> None:
    x = torch.arange(10.0)[None, :, None]
    regions = torch.tensor([[[2.0, 2.0], [0.0, 10.0], [9.0, 10.0]]])
    made = roi_align(x, regions, 4)[0, :, 0]
    torch.testing.assert_close(made[0], torch.tensor([2.125, 2.375, 2.625, 2.875]))  # taken to be a step long
    torch.testing.assert_close(made[1, :3], torch.tensor([1.25, 3.75, 6.25]))
    torch.testing.assert_close(made[2], torch.full((4,), 9.0))  # between the last step and the end: the last step
    assert roi_align(x, torch.zeros(1, 0, 2), 4).shape == (1, 0, 1, 4)


def test_trunks_see_what_they_say() -> None:
    slow = SlowFastTrunk(0.125)
    assert slow(drawn(1, 3, 16, 32, 32)).shape == (1, slow.out, 4)
    for layers in (18, 50):
        shift = ShiftTrunk(layers, 0.125).eval()  # type: ignore[arg-type]
        clip = drawn(1, 3, 24, 32, 32)
        with torch.no_grad():
            seen = shift(clip)
            assert seen.shape == (1, shift.out, 24)
            clip[:, :, 0] += 1
            again = shift(clip)
        blocks = 8 if layers == 18 else 16
        assert not torch.equal(seen[..., 1], again[..., 1])
        assert torch.equal(seen[..., blocks + 1 :], again[..., blocks + 1 :])
    assert isinstance(shift, FixedNorms)


def test_where_clips_overlap_one_of_two_stays_and_elsewhere_both() -> None:
    rows = np.array([[10, 15], [10, 15.5], [2, 4], [2, 4.1], [11, 30]], np.float32)
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5], np.float32)
    labels = np.array([0, 0, 1, 1, 2])
    kept = overlap_nms(rows, scores, labels, [(12, 16), (24, 28)], threshold=0.4)
    assert kept.tolist() == [0, 4, 2, 3]
    twice = overlap_nms(rows, scores, labels, [(12, 16), (24, 28)], threshold=0.4, reproduce_bugs=True)
    assert twice.tolist() == [0, 4, 4, 2, 3]
    other = overlap_nms(rows, scores, [0, 1, 0, 1, 2], [(12, 16)], threshold=0.4)
    assert sorted(other.tolist()) == [0, 1, 2, 3, 4]  # of other classes
    assert overlap_nms(np.zeros((0, 2)), [], [], [(12, 16)], threshold=0.4).tolist() == []
    found = Candidates(rows[:2], scores[:2], labels[:2])
    made = tiny(max_segments=1)
    assert len(made.suppress(made.merge_clips([(0, found)], 16))) == 1
    assert len(tiny().merge_clips([(0, found)], 16)) == 2  # one clip, no overlap
    assert len(tiny().merge_clips([(0, found), (12, found)], 28)) == 3


def test_best_pairs_of_query_and_class() -> None:
    made = tiny(top_candidates=4, min_probability=0.1)
    logits = torch.full((1, 2, 6, 3), -9.0)
    logits[0, -1, 0] = torch.tensor([3.0, 2.0, -3.0])
    logits[0, -1, 5, 2] = 1.0
    logits[0, 0] = 9.0  # of the layer before, which is not asked
    segments = torch.tensor([0.5, 0.25]).expand(1, 2, 6, 2)
    (found,) = made.decode(E2eTadOutputs(logits, segments, torch.full((1, 6), 0.5)))
    np.testing.assert_allclose(found.scores, 0.5 / (1 + np.exp([-3.0, -2.0, -1.0])), rtol=1e-6)
    assert found.labels.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.segments, [[6, 10]] * 3)
    assert len(tiny(top_candidates=4).decode(E2eTadOutputs(logits, segments, torch.ones(1, 6)))[0]) == 4


def test_sizes_are_rounded_and_places_are_not() -> None:
    picture = torch.arange(7.0).expand(1, 1, 5, 7)
    made = resize_by_factor(picture, 0.5)
    assert made.shape == (1, 1, 2, 4)  # 2.5 and 3.5, to the even number
    assert made[0, 0, 0].tolist() == [0.5, 2.5, 4.5, 6.0]
    assert torch.equal(resize_by_factor(picture, 1.0), picture)


def test_saved_and_loaded_is_the_same(tmp_path: Any) -> None:
    made = tiny()
    write_weights(made.state_dict(), tmp_path / "a.safetensors")
    again = load_detector("e2e_tad", weights=tmp_path / "a.safetensors", **TINY)
    assert isinstance(again, E2ETAD)
    wanted, found = made.raw(film(12)), again.raw(film(12))
    assert all(np.array_equal(wanted[key], found[key]) for key in wanted)
    with pytest.raises(CheckpointError, match="do not fit e2e_tad"):
        load_detector("e2e_tad", weights=tmp_path / "a.safetensors", **(TINY | {"backbone": "slowfast"}))


def test_settings_that_cannot_be() -> None:
    for changes, message in (
        ({"input_dim": 2}, "frames of 3 colours, not 2"),
        ({"levels": 2}, "no pyramid"),
        ({"dim": 48}, "dim 48 does not divide"),
        ({"heads": 5}, "dim 32 does not divide"),
        ({"backbone": "slowfast", "max_length": 12}, "a multiple of 8, not 12"),
        ({"clip_stride": 17}, "clip_stride 17 leaves out frames"),
        ({"backbone_width": 0.0}, "backbone_width is above 0"),
        ({"threshold": 0.0}, "threshold is above 0"),
        ({"dropout": 1.0}, "dropout is from 0"),
        ({"backbone": "i3d"}, "backbone"),
        ({"decoder_layers": 0}, "decoder_layers must be a whole number from 1 to 32"),
        ({"encoder_layers": 10**9}, "encoder_layers must be a whole number from 1 to 32"),
    ):
        with pytest.raises(BadValue, match=message):
            tiny(**changes)
