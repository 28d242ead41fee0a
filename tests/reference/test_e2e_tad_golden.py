"""E2E-TAD against results of the public program; `tests/golden/detectors2/README.md` describes them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from golden import by_rule, e2e_tad_rule

torch = pytest.importorskip("torch")

from golden import public_checkpoints
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.e2e_tad import (
    DeformableAttention,
    assign_queries,
    costs,
    logit,
    positions,
    roi_align,
)
from jostle.models.detection.blocks.trunks import ShiftTrunk, SlowFastTrunk, four_to_one, shifted, twice_as_fine
from jostle.models.detection.detector import make_detector
from jostle.models.detection.e2e_tad import E2ETAD, PARTS, E2eTadOutputs
from jostle.models.detection.nms import (
    hard_nms_rows,
    overlap_nms,
)
from jostle.models.detection.outputs import Losses

Build = Callable[..., E2ETAD]
Arrays = dict[str, Any]


@pytest.fixture(scope="module")
def build_detector(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Cached function that loads the small detector from a checkpoint as the program saves it."""
    tensors = {key: torch.from_numpy(value) for key, value in e2e_tad_rule.public().items()}
    file = public_checkpoints.write_e2e_tad(tensors, tmp_path_factory.mktemp("weights"))

    @cache
    def build(**changes: Any) -> E2ETAD:
        sizes = e2e_tad_rule.SIZES | {"reproduce_bugs": True} | changes
        detector = make_detector("e2e_tad_thumos_slowfast", weights=file, **sizes)
        assert isinstance(detector, E2ETAD)
        return detector

    return build


@pytest.fixture
def ops() -> Arrays:
    return by_rule.stored("detectors2/e2e_tad/ops.npz")


def golden(section: str) -> Arrays:
    return by_rule.stored(f"detectors2/e2e_tad/{section}.npz")


def assert_close(actual: Any, expected: Any, absolute: float = 2e-4) -> None:
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0, atol=absolute)


def stages_of(trunk: Any, clip: Any) -> Arrays:
    """Return the outputs of each named stage of a backbone."""
    stages: Arrays = {}
    hooks = []
    for name, module in trunk.named_modules():
        kind = name.removeprefix("slow_path.").removeprefix("fast_path.")
        path = {"slow_path": "slow_", "fast_path": "fast_"}.get(name.split(".")[0], "")
        if kind in ("conv1", "layer1", "layer2", "layer3", "layer4"):
            key = path + kind
        elif kind.endswith("_lateral"):
            key = "lateral_" + kind.removesuffix("_lateral")
        else:
            continue
        hooks.append(module.register_forward_hook(lambda _m, _x, out, key=key: stages.__setitem__(key, out.clone())))
    with torch.inference_mode():
        stages["feature"] = trunk(torch.from_numpy(clip))
    for hook in hooks:
        hook.remove()
    return stages


def test_backbone(build_detector: Build) -> None:
    stages = stages_of(build_detector().backbone["backbone"], e2e_tad_rule.clips()[:1])
    expected = golden("small_backbone")
    names = [key.removeprefix("mean_") for key in expected if key.startswith("mean_")]
    assert len(names) == 14
    for name in names:
        assert_close(stages[name][0].mean((1, 2, 3)), expected[f"mean_{name}"])
        assert_close(stages[name][0].mean(0)[:: 16 if name.startswith("fast") else 4], expected[f"map_{name}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", e2e_tad_rule.TRUNKS)
def test_backbones_of_published_width(name: str) -> None:
    trunk = SlowFastTrunk(1.0) if name == "slowfast_r50" else ShiftTrunk(50 if name.endswith("50") else 18, 1.0)
    shapes = {key: tuple(value.shape) for key, value in trunk.state_dict().items()}
    tensors = e2e_tad_rule.trunk(name, shapes)
    trunk.load_state_dict({key: torch.from_numpy(value) for key, value in tensors.items()})
    assert len(tensors) == {"slowfast_r50": 640, "tsm_r50": 318, "tsm_r18": 120}[name]
    stages, expected = stages_of(trunk.eval(), e2e_tad_rule.trunk_clip(name)), golden(name)
    assert_close(stages["feature"][0, :, 0], expected["feature_first"])
    assert_close(stages["feature"][0].mean(0), expected["feature_mean_c"])


def test_outputs(build_detector: Build) -> None:
    """Compare the input and memory of the transformer, and the query outputs after every layer."""
    detector, expected = build_detector(), golden("small_infer")
    clips = torch.from_numpy(e2e_tad_rule.clips())
    with torch.inference_mode():
        trunk = detector.backbone["backbone"](clips)
        assert_close(trunk[0], expected["feature"])
        assert_close(trunk[1].mean(0), expected["feature_1"])
        features = detector.features_of(clips)
        assert_close(features.mT, expected["proj"])
        assert_close(positions(torch.ones(2, 16), 64).mT, expected["pos"], 1e-5)
        memory = detector.transformer.encode(features, None)
        assert_close(memory.mT, expected["memory"])
        query_positions = detector.query_embed.weight[:, :64]
        assert_close(
            detector.transformer.reference_points(query_positions).sigmoid().expand(2, -1, -1),
            expected["init_ref"],
            1e-5,
        )
        hidden, _ = detector.transformer.decode(memory, None, detector.query_embed.weight, detector.segment_embed)
        assert_close(hidden[:, -1], expected["hs_last"])
        outputs = detector(clips)
        assert_close(outputs.logits.transpose(0, 1), expected["logits"])
        assert_close(outputs.segments.transpose(0, 1), expected["segments"], 1e-5)
        assert_close(outputs.actionness, expected["actionness"][..., 0], 1e-5)
        regions = detector.regions(outputs.segments[:, -1], 16)
        assert_close(regions.flatten(0, 1), expected["rois"][:, 1:], 2e-4)
        assert_close(roi_align(memory, regions, PARTS)[0, 0], expected["roi_feature_0"])


def test_padded_frames_are_ignored(build_detector: Build) -> None:
    detector, expected = build_detector(), golden("small_infer")
    clips, padded = torch.from_numpy(e2e_tad_rule.clips()), torch.zeros(2, 64, dtype=torch.bool)
    clips[1, :, 48:], padded[1, 48:] = 0, True
    assert_close(padded[:, ::4], expected["masked_mask"])
    with torch.inference_mode():
        assert_close(positions((~padded[:, ::4]).float(), 64).mT, expected["masked_pos"], 1e-5)
        assert_close(
            detector.transformer.encode(detector.features_of(clips), padded[:, ::4]).mT, expected["masked_memory"]
        )
        outputs = detector(clips, padded)
    assert_close(outputs.logits[:, -1], expected["masked_logits"])
    assert_close(outputs.segments[:, -1], expected["masked_segments"], 1e-5)
    assert_close(outputs.actionness, expected["masked_actionness"][..., 0], 1e-5)


def test_segments(build_detector: Build) -> None:
    detector, expected = build_detector(), golden("small_infer")
    with torch.inference_mode():
        outputs = detector(torch.from_numpy(e2e_tad_rule.clips()))
    for i, candidates in enumerate(detector.decode(outputs)):
        assert_close(candidates.scores, expected["post_scores"][i], 1e-5)
        np.testing.assert_array_equal(candidates.labels, expected["post_labels"][i])
        assert_close(candidates.segments * (6.4 / 64), expected["post_segments"][i], 1e-4)
        segments = detector.suppress(detector.merge_clips([(0, candidates)], 64))  # one clip: nothing is suppressed
        assert_close(segments.segments, candidates.segments, 0)


def training_actions(expected: Arrays) -> Actions:
    """Return the actions of the two training clips, in frames."""
    centre, width = 64 * expected["gt_segments"].T
    rows = np.c_[centre - width / 2, centre + width / 2]
    of = [expected["gt_video"] == i for i in (0, 1)]
    return Actions.of([(rows[i], expected["gt_labels"][i]) for i in of])


def test_matching(build_detector: Build) -> None:
    expected, outputs_of_program = golden("small_train"), golden("small_infer")
    actions = training_actions(expected)
    actions = Actions(actions.segments / 64, actions.labels, actions.present)
    logits, segments = (torch.from_numpy(outputs_of_program[name]).transpose(0, 1) for name in ("logits", "segments"))
    cost = costs(logits, segments, actions)
    assert_close(cost[0, -1, :, :3], expected["cost_last_0"], 1e-4)
    assert_close(cost[1, -1, :, :2], expected["cost_last_1"], 1e-4)
    number = assign_queries(logits, segments, actions)
    for layer in range(3):
        rows = [(i, q, int(a)) for i in (0, 1) for q, a in enumerate(number[i, layer]) if a >= 0]
        assert sorted(rows) == sorted(map(tuple, expected[f"match_{layer}"].tolist()))


def check_losses(losses: Losses, expected: Arrays) -> None:
    every = {"ce": losses.classification, "segments": losses.regression}
    every |= {name: losses.others[name] for name in ("iou", "actionness")}
    for layer in ("0", "1"):
        for theirs, ours in (("ce", "classification"), ("segments", "regression"), ("iou", "iou")):
            every[f"{theirs}_{layer}"] = losses.others[f"{ours}_{layer}"]
    every["total"] = losses.total
    assert {f"loss_{name}" for name in every} == {name for name in expected if name.startswith("loss_")}
    for name, value in every.items():
        assert value.item() == pytest.approx(float(expected[f"loss_{name}"]), rel=1e-5), name
    assert losses.positives.item() == 5


def check_gradients(detector: E2ETAD, expected: Arrays, prefix: str = "") -> None:
    parameters = dict(detector.named_parameters())
    for key, norm in zip(trained_keys(), expected["grad_norm"], strict=True):
        if prefix and key.startswith(prefix):
            continue
        gradient = parameters[key].grad
        assert (gradient is None) == (norm < 0), key
        if norm > 1e-4:
            assert gradient is not None
            assert gradient.norm().item() == pytest.approx(norm, rel=2e-3), key


def trained_keys() -> list[str]:
    shapes = by_rule.shapes(e2e_tad_rule.keys("small"))
    return [key for key in shapes if not key.endswith(("running_mean", "running_var", "num_batches_tracked"))]


def test_losses_and_gradients_of_the_transformer(build_detector: Build) -> None:
    """Double precision is needed: inputs of a ReLU near 0 are decided by rounding in single precision."""
    detector, expected = copy.deepcopy(build_detector()).train().double(), golden("small_train")
    detector.backbone.requires_grad_(False)
    losses = detector.loss(detector(torch.from_numpy(e2e_tad_rule.clips()).double()), training_actions(expected))
    losses.total.backward()
    check_losses(losses, expected)
    check_gradients(detector, expected, "backbone.")


@pytest.mark.slow
def test_gradients_of_all_parameters_and_optimiser_steps(build_detector: Build) -> None:
    expected, steps = golden("small_train"), golden("small_optim")
    detector = copy.deepcopy(build_detector()).train().double()
    clips, actions = torch.from_numpy(e2e_tad_rule.clips()).double(), training_actions(expected)
    parameters, trained = dict(detector.named_parameters()), trained_keys()
    before = {key: value.detach().clone() for key, value in parameters.items()}
    assert (expected["grad_norm"] < 0).sum() == 212
    rate = {0: 1e-3, 1: 5e-5, 2: 1e-4}
    groups = [
        {"params": [parameters[key] for key, of in zip(trained, steps["group"], strict=True) if of == group], "lr": lr}
        for group, lr in rate.items()
    ]
    descent = torch.optim.AdamW(groups, weight_decay=1e-4)
    for step, total in enumerate(steps["loss"]):
        losses = detector.loss(detector(clips), actions)
        descent.zero_grad()
        losses.total.backward()
        if step == 0:
            check_losses(losses, expected)
            check_gradients(detector, expected)
        assert losses.total.item() == pytest.approx(total, rel=1e-5 if step == 0 else 1e-3)
        norm = torch.nn.utils.clip_grad_norm_(detector.parameters(), 0.1)
        assert norm.item() == pytest.approx(float(steps["grad_norm_total"][step]), rel=2e-3 if step == 0 else 2e-2)
        descent.step()
    for key, change in zip(trained, steps["change_norm"], strict=True):
        moved = (parameters[key].detach() - before[key]).norm().item()
        assert moved == pytest.approx(max(change, 0.0), rel=2e-2, abs=1e-7), key


def test_actionness_targets_come_from_the_same_video(build_detector: Build) -> None:
    """The program uses the targets of the whole batch; in a batch of one they are those of the same video."""
    expected, outputs_of_program = golden("small_train"), golden("small_infer")
    logits, segments = (torch.from_numpy(outputs_of_program[name]).transpose(0, 1) for name in ("logits", "segments"))
    outputs = E2eTadOutputs(logits, segments, torch.from_numpy(outputs_of_program["actionness"][..., 0]))
    actions = training_actions(expected)
    released = build_detector()
    batch_loss = build_detector(reproduce_bugs=False).loss(outputs, actions).others["actionness"].item()
    clip_losses = []
    for i in (0, 1):
        clip_outputs = E2eTadOutputs(logits[i : i + 1], segments[i : i + 1], outputs.actionness[i : i + 1])
        present = actions.present[i]
        clip_actions = Actions.of([(actions.segments[i][present].numpy(), actions.labels[i][present].numpy())])
        clip_losses.append(released.loss(clip_outputs, clip_actions).others["actionness"].item())
    assert batch_loss == pytest.approx(np.mean(clip_losses), rel=1e-5)
    assert abs(batch_loss - float(expected["loss_actionness"])) > 1e-3


@pytest.mark.parametrize("kind", [1, 2])
def test_deformable_attention(kind: int, ops: Arrays) -> None:
    attention = DeformableAttention(32, 4, 3)
    weights = e2e_tad_rule.drawn(e2e_tad_rule.keys("deform"), e2e_tad_rule.OPS)
    weights["sampling_offsets.weight"] *= 2
    attention.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    query, value, probe = (
        torch.from_numpy(e2e_tad_rule.uniform((2, n, 32), seed)) for seed, n in ((1, 7), (2, 13), (3, 7))
    )
    reference = torch.from_numpy(e2e_tad_rule.uniform((2, 7, 1, kind), 3 + kind, 0.02, 0.98))
    for x in (query, value, reference):
        x.requires_grad_()
    positions_of_samples = attention.places(query, reference[:, :, 0], 13)
    assert_close((positions_of_samples.detach().transpose(1, 2) + 0.5) / 13, ops[f"deform{kind}_loc"], 1e-5)
    y = attention(query, reference[:, :, 0], value, torch.from_numpy(ops["deform_mask"]))
    assert_close(y.detach(), ops[f"deform{kind}_out"], 1e-5)
    (y * probe).sum().backward()
    for name, x in (("query", query), ("value", value), ("ref", reference)):
        assert_close(x.grad, ops[f"deform{kind}_grad_{name}"], 2e-4)
    norms = [attention.get_parameter(key).grad.norm().item() for key in weights]
    np.testing.assert_allclose(norms, ops[f"deform{kind}_grad_norm_params"], rtol=1e-4)


def test_roi_align(ops: Arrays) -> None:
    x = torch.from_numpy(e2e_tad_rule.uniform((2, 6, 20), 10)).requires_grad_()
    clip, regions = ops["roi_rois"][:, 0].astype(int), torch.from_numpy(ops["roi_rois"][:, 1:])
    pooled = roi_align(x.mT[clip], regions[:, None], PARTS)[:, 0]
    assert_close(pooled.detach(), ops["roi_out"], 1e-5)
    (pooled * torch.from_numpy(e2e_tad_rule.uniform((14, 6, 16), 12))).sum().backward()
    assert_close(x.grad, ops["roi_grad"], 1e-5)


def test_positions_shift_and_resampling(ops: Arrays) -> None:
    valid = torch.ones(2, 12)
    valid[1, 9:] = 0
    assert_close(positions(valid, 16).mT, ops["pos"], 1e-5)
    assert_close(logit(torch.tensor([-0.1, 0, 1e-6, 0.25, 0.5, 0.999999, 1, 1.2])), ops["inverse_sigmoid"], 1e-5)
    np.testing.assert_array_equal(
        shifted(torch.from_numpy(e2e_tad_rule.uniform((10, 16, 2, 2), 20)), 5), ops["shift_out"]
    )
    assert_close(twice_as_fine(torch.from_numpy(e2e_tad_rule.uniform((1, 3, 8), 21))), ops["slow_up2"], 1e-6)
    assert_close(four_to_one(torch.from_numpy(e2e_tad_rule.uniform((1, 3, 32), 22))), ops["fast_down4"], 1e-6)


def test_suppression(ops: Arrays) -> None:
    start, end, score, label = ops["nms_in"].T
    candidates = (np.c_[start, end], score, label.astype(int))
    for name, multiclass in (("nms_hard_index", False), ("nms_per_class_index", True)):
        rows = hard_nms_rows(*candidates, threshold=0.4, max_segments=60, multiclass=multiclass)
        np.testing.assert_array_equal(np.sort(rows), np.sort(ops[name]))
    start, end, score, label = ops["merge_in"].T
    length, stride, fps = ops["merge_slice"]
    overlaps = [(first / fps, (first - stride + length) / fps) for first in (stride, 2 * stride)]
    candidates = (np.c_[start, end], score, label.astype(int))
    duplicated = overlap_nms(*candidates, overlaps, threshold=0.4, reproduce_bugs=True)
    np.testing.assert_array_equal(np.sort(duplicated), np.sort(ops["merge_index"]))
    unique = overlap_nms(*candidates, overlaps, threshold=0.4)
    np.testing.assert_array_equal(np.sort(unique), np.unique(ops["merge_index"]))
    assert len(unique) == len(duplicated) - 1


def test_clips_start_at_the_slices_of_the_program() -> None:
    detector = make_detector("e2e_tad", backbone="tsm18", backbone_width=0.02, dim=32, heads=4)
    assert isinstance(detector, E2ETAD)
    slices = json.loads((by_rule.GOLDEN / "detectors2/e2e_tad/slices.json").read_text())
    for number, count in enumerate(slices["lengths"]):
        names = [row["name"] for row in slices["val"] if row["name"].startswith(f"v{number}_")]
        assert names
        assert [int(name.split("_")[2]) for name in names] == detector.clips(count)


def test_preprocessing(ops: Arrays) -> None:
    frames = np.floor(e2e_tad_rule.uniform((2, 60, 81, 3), 70, 0, 256)).astype(np.uint8)[..., ::-1]
    sizes = {"frame_size": 22, "crop": 16, "max_length": 2, "clip_stride": 2}
    detector = make_detector("e2e_tad", backbone="tsm18", backbone_width=0.02, dim=32, heads=4, **sizes)
    assert isinstance(detector, E2ETAD)
    prepared = detector.prepare(np.ascontiguousarray(frames))
    assert_close(detector.clip(prepared, 0)[0], ops["img_out"], 1e-3)
