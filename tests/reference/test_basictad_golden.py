"""BasicTAD against results of the public program; `tests/golden/detectors2/README.md` describes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import basictad_rule, by_rule

torch = pytest.importorskip("torch")

from jostle.models.detection.basictad import BasicTAD
from jostle.models.detection.blocks.assignment import Actions, centre_distance_iou, focal
from jostle.models.detection.blocks.basictad import (
    AT_A_STEP,
    decode_segments,
    make_anchors,
    match_anchors,
    overlaps,
    softmax_focal,
)
from jostle.models.detection.blocks.convolution import DeformableConv
from jostle.models.detection.detector import make_detector
from jostle.models.detection.nms import (
    hard_nms,
    weighted_nms,
)
from jostle.models.detection.outputs import Candidates

Build = Callable[..., BasicTAD]
Arrays = dict[str, Any]


@pytest.fixture(params=basictad_rule.FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def build_detector(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Cached function that loads the detector of a form from a checkpoint as the program saves it."""
    files: dict[str, Path] = {}

    @cache
    def build(form: str, **changes: Any) -> BasicTAD:
        if form not in files:
            files[form] = tmp_path_factory.mktemp("weights") / "epoch_300_weights.pth"
            tensors = basictad_rule.public(form)
            assert len(tensors) == {"ab6": 774}.get(form, 671)
            torch.save({key: torch.from_numpy(value) for key, value in tensors.items()}, files[form])
        sizes = basictad_rule.SIZES[form]
        detector = make_detector(
            f"basictad_thumos_{form}", weights=files[form], **(sizes | {"reproduce_bugs": True} | changes)
        )
        assert isinstance(detector, BasicTAD)
        return detector

    return build


@pytest.fixture
def ops() -> Arrays:
    return by_rule.stored("detectors2/basictad/ops.npz")


def golden(form: str, section: str) -> Arrays:
    return by_rule.stored(f"detectors2/basictad/{form}_{section}.npz")


def assert_close(actual: Any, expected: Any, absolute: float = 2e-4) -> None:
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0, atol=absolute)


def test_outputs(form: str, build_detector: Build) -> None:
    """Compare backbone stages, pyramid levels and head outputs of both windows."""
    detector, expected = build_detector(form), golden(form, "infer")
    with torch.inference_mode():
        x = torch.from_numpy(basictad_rule.window(form, 0))
        for number, block in enumerate(detector.backbone.blocks):
            x = block(x)
            assert_close(x[0].mean((1, 2, 3)), expected[f"mean_block{number}"])
            assert_close(x[0].mean(0)[::8], expected[f"map_block{number}"])
        if form == "ab6":
            for level, rows in enumerate(detector.neck[0](x)):
                assert_close(rows[0].mean(0), expected[f"w0_vdm_{level}"])
    rows_a_step = AT_A_STEP if form == "ab6" else 1
    sizes = [size * rows_a_step for size in detector.config.sizes]
    for number in (0, 1):
        with torch.inference_mode():
            clip = torch.from_numpy(basictad_rule.window(form, number))
            features = detector.see(clip.transpose(1, 2).flatten(0, 1))
            pyramid, outputs = detector.levels_of(torch.unflatten(features, 0, (len(clip), -1))), detector(clip)
        levels = zip(pyramid, outputs.logits[0].split(sizes), outputs.places[0].split(sizes), strict=True)
        for level, (rows, logits, positions) in enumerate(levels):
            neck = expected[f"w{number}_neck_{level}"]
            assert_close(rows[0] if neck.ndim == 2 else rows[0].mean(0), neck)
            classes = expected[f"w{number}_cls_{level}"]
            level_logits = logits.reshape(rows.shape[-1], -1).T
            if form == "ab6" and number == 1:
                level_logits = level_logits.reshape(AT_A_STEP, 20, -1).amax(1)
            assert_close(level_logits, classes)
            assert_close(positions.reshape(rows.shape[-1], -1).T, expected[f"w{number}_reg_{level}"])
        if form != "ab6" and number == 0:
            assert_close(pyramid[0][0, :16], expected["w0_neck_0_first16"])


def window_candidates(detector: BasicTAD, form: str) -> list[tuple[int, Candidates]]:
    candidates = []
    for number, (first, _) in enumerate(basictad_rule.WINDOWS[form]):
        with torch.inference_mode():
            outputs = detector(torch.from_numpy(basictad_rule.window(form, number)))
        candidates.append((first, detector.decode(outputs)[0]))
    return candidates


def check_all(actual: npt.NDArray[Any], expected: npt.NDArray[Any], ends: float) -> None:
    """Check that at least 99 % of the expected rows [start, end, class, score] have a match."""
    assert len(actual) == len(expected)
    matched = 0
    for start, end, label, score in expected:
        near = (np.abs(actual[:, :2] - [start, end]) <= ends).all(1) & (actual[:, 2] == label)
        matched += bool((near & (np.abs(actual[:, 3] - score) <= 1e-5)).any())
    assert matched >= 0.99 * len(expected)


@pytest.mark.parametrize("form", ["ab6", "afs3"])
def test_segments(form: str, build_detector: Build) -> None:
    detector, expected = build_detector(form), golden(form, "infer")
    count = basictad_rule.WINDOWS[form][1][1]
    candidates = detector.merge_clips(window_candidates(detector, form), count)
    assert len(candidates) == expected["candidates_above"]
    every = build_detector(form, min_probability=0.0)
    pairs = every.merge_clips(window_candidates(every, form), count)
    assert_close(pairs.segments[::20], expected["candidates_segments"], 5e-4)
    assert_close(pairs.scores.reshape(-1, 20).max(1), expected["candidates_scores_max"], 1e-5)
    suppressed = detector.suppress(candidates)
    check_all(
        np.c_[suppressed.segments, suppressed.labels, suppressed.scores],
        np.c_[expected["nmw"][:, :2], expected["nmw_labels"], expected["nmw"][:, 2]],
        1e-3,
    )
    seconds = detector.to_seconds(candidates, detector.config.fps, count / detector.config.fps)
    final = expected["final"][
        expected["final"][:, 0] < expected["final"][:, 1]
    ]  # segments without length are dropped here
    check_all(np.c_[seconds.start, seconds.end, seconds.label, seconds.score], final, 1e-5)
    assert len(final) < len(expected["final"])
    mended = build_detector(form, reproduce_bugs=False)
    segments = mended.suppress(mended.merge_clips(window_candidates(mended, form), count)).segments
    assert (segments[:, 0] < segments[:, 1]).all()


def test_segments_of_points_with_softmax(build_detector: Build) -> None:
    detector, expected = build_detector("afm6"), golden("afm6", "infer")
    parts = window_candidates(detector, "afm6")
    for number, (_, candidates) in enumerate(parts):
        point, label = (expected[f"w{number}_scores"] > 0.005).nonzero()
        assert len(candidates) == len(point)
        assert_close(candidates.scores, expected[f"w{number}_scores"][point, label], 1e-5)
        assert_close(candidates.segments, expected[f"w{number}_segments"][point], 5e-4)
    merged = detector.merge_clips(parts, 102)
    _, label, start, end, score = expected["nmw"].T
    check_all(np.c_[merged.segments, merged.labels + 1, merged.scores], np.c_[start, end, label, score], 1e-3)
    segments = detector.suppress(merged)
    check_all(np.c_[segments.segments / 6, segments.labels + 1, segments.scores], expected["final"], 1e-3)
    assert expected["final"][:, 1].max() > 102 / 6  # the program returns segments beyond the end of the video
    mended = build_detector("afm6", reproduce_bugs=False)
    assert mended.merge_clips(window_candidates(mended, "afm6"), 102).segments.max() <= 102


def training_batch(form: str, expected: Arrays) -> tuple[Any, Actions]:
    """Return the two training clips and their actions."""
    length, seed = basictad_rule.SIZES[form]["max_length"], basictad_rule.CLIPS[form] + 50
    clips = np.concatenate([basictad_rule.clip(length, seed + i) for i in (0, 1)])
    labels = expected["gt_labels"] - (form != "ab6")
    of = [expected["gt_video"] == i for i in (0, 1)]
    return torch.from_numpy(clips), Actions.of([(expected["gt_segments"][rows], labels[rows]) for rows in of])


def test_targets(form: str, build_detector: Build) -> None:
    detector, expected = build_detector(form), golden(form, "train")
    actions = training_batch(form, expected)[1]
    if form == "ab6":
        assert_close(detector.anchors, expected["anchors"], 1e-5)
        number, ignored = match_anchors(detector.anchors, actions)
        labels = torch.where(number >= 0, actions.labels.gather(-1, number.clamp(min=0)), 20)
        np.testing.assert_array_equal(labels, expected["target_labels"])
        np.testing.assert_array_equal(~ignored, expected["target_label_weights"] > 0)
        positive = expected["target_segment_weights"][..., 0] > 0
        np.testing.assert_array_equal(number >= 0, positive)
        goal = actions.segments.gather(1, number.clamp(min=0)[..., None].expand(-1, -1, 2))
        assert_close(goal[positive], expected["target_segment_targets"][positive], 1e-5)
        return
    targets = detector.answers(actions)
    np.testing.assert_array_equal(torch.where(targets.ignored, -1, targets.labels + 1), expected["target_labels"])
    distances = (
        expected["target_distances"][targets.positive] if form == "afs3" else expected["target_distances_positive"]
    )
    assert_close(targets.offsets[targets.positive], distances, 1e-5)
    mended = build_detector(form, reproduce_bugs=False).answers(actions)
    assert torch.equal(mended.positive, targets.positive)
    assert torch.equal(mended.offsets[targets.positive], targets.offsets[targets.positive])


@pytest.mark.parametrize(
    "form", ["ab6", pytest.param("afs3", marks=pytest.mark.slow), pytest.param("afm6", marks=pytest.mark.slow)]
)
def test_losses_gradients_and_optimiser_steps(form: str, build_detector: Build) -> None:
    """Double precision is needed: ties at a maximum or a ReLU are decided by rounding in single precision."""
    expected = golden(form, "train")
    detector = copy.deepcopy(build_detector(form)).train()
    for part in (detector.backbone, detector.neck, detector.head):
        part.double()
    clips, actions = training_batch(form, expected)
    tensors, parameters = detector.state_dict(), dict(detector.named_parameters())
    before = {key: value.clone() for key, value in tensors.items()}
    shapes = by_rule.shapes(basictad_rule.keys(form))
    learned = [key for key in shapes if not key.endswith(("running_mean", "running_var", "num_batches_tracked"))]
    descent = torch.optim.SGD(
        [p for p in detector.parameters() if p.requires_grad], lr=1e-3, momentum=0.9, weight_decay=1e-4
    )
    for step, total in enumerate(expected["sgd_loss"]):
        losses = detector.loss(detector(clips.double()), actions)
        descent.zero_grad()
        losses.total.backward()
        if step == 0:
            assert losses.classification.item() == pytest.approx(float(expected["loss_cls"]), rel=1e-5)
            assert losses.regression.item() == pytest.approx(float(expected["loss_segment"]), rel=1e-5)
            for key, norm in zip(learned, expected["grad_norm"], strict=True):
                gradient = parameters[key].grad
                assert (gradient is None) == (norm < 0), key
                if norm > 1e-4:
                    assert gradient is not None
                    assert gradient.norm().item() == pytest.approx(norm, rel=2e-3), key
            running = [key for key in shapes if key.endswith(("running_mean", "running_var"))]
            for key, change in zip(running, expected["running_change"], strict=True):
                assert (tensors[key] - before[key]).norm().item() == pytest.approx(change, rel=1e-4, abs=1e-5), key
        assert losses.total.item() == pytest.approx(total, rel=1e-5 if step == 0 else 1e-3)
        descent.step()
    for key, change in zip(learned, expected["sgd_change_norm"], strict=True):
        moved = (tensors[key] - before[key]).norm().item()
        assert moved == pytest.approx(max(change, 0.0), rel=2e-2, abs=1e-7), key


def test_deformable_convolution(ops: Arrays) -> None:
    layer = DeformableConv(6, 5)
    weights = {key: torch.from_numpy(value) for key, value in basictad_rule.drawn("dcn", basictad_rule.OPS).items()}
    weights["p_conv.weight"] *= 1.5
    layer.load_state_dict(weights)
    x = torch.from_numpy(basictad_rule.uniform((2, 6, 11), 1)).requires_grad_()
    assert_close(layer.p_conv(x).detach(), ops["dcn_offset"], 1e-5)
    y = layer(x)
    assert_close(y.detach(), ops["dcn_out"], 1e-5)
    (y * torch.from_numpy(basictad_rule.uniform((2, 5, 11), 2))).sum().backward()
    assert_close(x.grad, ops["dcn_grad_x"], 1e-5)
    assert_close(layer.p_conv.bias.grad, ops["dcn_grad_p_conv_bias"], 1e-5)
    norms = [layer.get_parameter(key).grad.norm().item() for key in weights]
    np.testing.assert_allclose(norms, ops["dcn_grad_norm"], rtol=1e-5)


def test_loss_terms_and_input_gradients(ops: Arrays) -> None:
    logits = torch.from_numpy(basictad_rule.uniform((40, 7), 10, -12, 12)).requires_grad_()
    target = torch.from_numpy(ops["focal_target"])
    each = focal(logits, torch.nn.functional.one_hot(target, 8)[:, :7].float())
    assert_close(each.detach(), ops["focal_loss"], 1e-5)
    (gradient,) = torch.autograd.grad(each.sum(), logits)
    assert_close(gradient, ops["focal_grad"], 1e-5)
    target = torch.from_numpy(ops["softmax_focal_target"])
    mean = softmax_focal(logits, target)[target >= 0].mean()
    assert mean.item() == pytest.approx(float(ops["softmax_focal_loss"]), rel=1e-5)
    (gradient,) = torch.autograd.grad(mean, logits)
    assert_close(gradient, ops["softmax_focal_grad"], 1e-5)
    segments = torch.from_numpy(ops["diou_pred"]).requires_grad_()
    apart = centre_distance_iou(segments, torch.from_numpy(ops["diou_target"]))
    assert_close(apart.detach(), ops["diou_loss"], 1e-5)
    (gradient,) = torch.autograd.grad(apart.sum(), segments)
    assert_close(gradient, ops["diou_grad"], 1e-5)
    distances, goal = (torch.from_numpy(basictad_rule.uniform((40, 2), seed, 0.1, 9)) for seed in (15, 16))
    distances.requires_grad_()
    sides = torch.tensor([-1.0, 1.0])
    mean = centre_distance_iou(distances * sides, goal * sides, slack="cover").mean()
    assert mean.item() == pytest.approx(float(ops["diou_dist_loss"]), rel=1e-5)
    (gradient,) = torch.autograd.grad(mean, distances)
    assert_close(gradient, ops["diou_dist_grad"], 1e-5)


def test_anchors_and_their_assignment(ops: Arrays) -> None:
    anchors = make_anchors((12, 6, 3, 2, 1), 2)
    assert_close(anchors, ops["anchors"], 1e-5)
    assert_close(
        decode_segments(torch.from_numpy(basictad_rule.uniform((120, 2), 20, -0.8, 0.8)), anchors).clamp(0, 20),
        ops["decoded"],
        5e-4,
    )
    actions = Actions.of([(ops["assign_gt"], np.zeros(3, int))])
    assert_close(overlaps(anchors, actions)[0].amax(-1), ops["assign_iou"], 1e-5)
    number, ignored = match_anchors(anchors, actions)
    np.testing.assert_array_equal(torch.where(ignored, -1, number + 1)[0], ops["assign_index"])


def test_weighted_nms_and_suppression(ops: Arrays, build_detector: Build) -> None:
    row, label = (ops["nmw_scores"] > 0.2).nonzero()
    candidates = Candidates(ops["nmw_segments"][row], ops["nmw_scores"][row, label], label)
    for threshold, name in ((0.5, "nmw_0.5_1200"), (0.6, "nmw_0.6_-1")):
        segments, scores, labels = weighted_nms(
            candidates.segments, candidates.scores, candidates.labels, threshold=threshold
        )
        assert_close(np.c_[segments, scores, labels], ops[name], 1e-4)
    for most in (1200, 40, 16):
        suppressed = build_detector("afs3", max_segments=most).suppress(candidates)
        assert_close(np.c_[suppressed.segments, suppressed.scores, suppressed.labels], ops[f"nmw-af_0.4_{most}"], 1e-4)
    assert len(suppressed) == 222  # adding two segments at once skips the limit of 16
    assert len(build_detector("afs3", max_segments=16, reproduce_bugs=False).suppress(candidates)) == 16
    for threshold in (0.3, 0.6):
        one = (ops["nmw_segments"], ops["nmw_scores"][:, 0], np.zeros(60, int))
        scores = hard_nms(*one, threshold=threshold, max_segments=60)[1]
        np.testing.assert_array_equal(scores, ops["nmw_scores"][ops[f"hard_{threshold}"], 0])


def test_preprocessing(ops: Arrays, build_detector: Build) -> None:
    frames = np.floor(basictad_rule.uniform((15, 36, 51, 3), 40, 0, 256)).astype(np.uint8)[..., ::-1]
    detector = make_detector(
        "basictad",
        max_length=8,
        levels=2,
        finest=1,
        clip_stride=6,
        frame_size=20,
        crop=8,
        backbone_width=0.02,
        dim=8,
        neck_dim=8,
    )
    assert isinstance(detector, BasicTAD)
    prepared = detector.prepare(np.ascontiguousarray(frames))
    firsts = detector.clips(15)
    assert firsts == ops["img_meta"][:, 0].tolist()
    assert_close(torch.cat([detector.clip(prepared, first) for first in firsts]), ops["img_windows"], 1e-3)
