"""VSGN against results of the public programs; `tests/golden/detectors2/README.md` describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import by_rule, vsgn_rule

torch = pytest.importorskip("torch")

import torch.nn.functional as F

from jostle.models.checkpoints import write_weights
from jostle.models.detection.blocks.assignment import Actions, focal, generalised_iou, match, overlaps
from jostle.models.detection.blocks.boundaries import EndShift, curve_targets
from jostle.models.detection.blocks.vsgn import (
    GraphBlock,
    Stitching,
    decode_boxes,
    make_anchors,
    nearest,
)
from jostle.models.detection.detector import make_detector
from jostle.models.detection.nms import hard_nms, soft_nms
from jostle.models.detection.outputs import Candidates
from jostle.models.detection.vsgn import VSGN, VsgnOutputs

LENGTH = 256
Rows = npt.NDArray[np.float32]


@pytest.fixture(scope="module", params=vsgn_rule.FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def loaded() -> dict[str, Any]:
    """Detectors by form; kept by name, as workers that take tests from each other may outlive a parameter."""
    return {}


@pytest.fixture
def detector(form: str, loaded: dict[str, Any], tmp_path: Path) -> Any:
    """Detector of a form, loaded once from a checkpoint as the program saves it."""
    if form not in loaded:
        path = tmp_path / "best.pth.tar"
        drawn = {f"module.{key}": torch.from_numpy(value) for key, value in vsgn_rule.weights(form).items()}
        torch.save({"epoch": 9, "state_dict": drawn, "optimizer": {"state": {}, "param_groups": []}}, path)
        with pytest.warns(UserWarning, match="no averaged weights"):
            loaded[form] = make_detector(vsgn_rule.NAMES[form], weights=path, **vsgn_rule.SIZES[form])
    return loaded[form]


def golden(form: str, section: str) -> dict[str, Any]:
    return by_rule.stored(f"detectors2/vsgn/{form}_{section}.npz")


def streams(video: str, steps: int) -> Rows:
    """Return both streams of a video of the ActivityNet form, each resized to a number of steps."""
    rgb, flow, seed = vsgn_rule.PAIRS[video]
    parts = (by_rule.rows_of(rgb, 16, seed), by_rule.rows_of(flow, 16, seed + 1000))
    sized = [F.interpolate(torch.from_numpy(x.T[None].copy()), steps, mode="linear", align_corners=True) for x in parts]
    return np.concatenate([x[0].T.numpy() for x in sized], 1)


@pytest.fixture
def anet_copies(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Let the copies be resized from the original streams of different lengths, as the ActivityNet program does."""
    copies: dict[int, str] = {}
    fill = Stitching.fill

    def from_streams(self: Stitching, features: Any) -> Any:
        window = fill(self, features)
        for i in self.stitched.nonzero()[:, 0].tolist():
            video, begin = copies.get(int(self.rows[i])), int(self.begin[i])
            if video is not None:
                window[i, :, begin:] = torch.from_numpy(streams(video, LENGTH - begin).T.copy())
        return window

    monkeypatch.setattr(Stitching, "fill", from_streams)
    return copies


def batch_of(form: str, expected: dict[str, Any], copies: dict[int, str]) -> list[Rows]:
    if form != "anet":
        windows = expected["windows_val"][expected["batch_index"]]
        return [vsgn_rule.features(video)[first : last + 1] for video, first, last in windows]
    copies[100] = "v_b"
    return [streams("v_a", 240), streams("v_b", 100)]


ANNOTATED = {"thumos": [(20, 50, 1), (60, 72, 2), (180, 200, 3)], "anet": [(10, 45, 1), (75, 200, 2)]}
SECOND = {"thumos": [(38, 58, 3)], "anet": [(7.5, 30, 3), (40, 97.5, 1)]}  # 9.0 to 10.0 s; 1.5 to 6.0, 8.0 to 19.5 s


def actions_of(form: str, expected: dict[str, Any]) -> Actions:
    """Return the annotations of the batch on the feature grid, without the copies, which the detector adds."""
    if form == "thumos_plain":
        boxes = expected["gt_boxes"]
        videos = [boxes[boxes[:, 0] == i, 1:] * [LENGTH, LENGTH, 1] for i in (0, 1)]
    else:
        videos = [np.array(ANNOTATED[form]), np.array(SECOND[form])]
    classes = np.int64(form != "anet")
    return Actions.of([(rows[:, :2] - 0.5, (rows[:, 2].astype(int) - 1) * classes) for rows in videos])


def test_outputs_targets_losses_and_gradients(form: str, detector: VSGN, anet_copies: dict[int, str]) -> None:
    expected = golden(form, "train")
    x, lengths = detector.batch(batch_of(form, expected, anet_copies))
    assert lengths.tolist() == expected["num_frames"].tolist()
    outputs = detector(x, lengths)
    window = outputs.stitching.fill(x)
    assert by_rule.digest([window.numpy()]) == str(expected["input_sha256"])
    width = outputs.logits.shape[-1]
    for name, actual, columns in (("cls_logits", outputs.logits, width), ("reg", None, 2)):
        stored = np.concatenate(
            [expected[f"{name}_{i}"].transpose(0, 2, 1).reshape(2, -1, columns) for i in range(4, -1, -1)], 1
        )
        if actual is None:
            boxes = decode_boxes(torch.from_numpy(stored), detector.anchors)
            np.testing.assert_allclose(outputs.boxes.detach(), boxes, rtol=5e-5, atol=5e-4)
        else:
            np.testing.assert_allclose(actual.detach(), stored, rtol=0, atol=1e-4)
    for i, name in enumerate(("action", "start", "end")):
        np.testing.assert_allclose(outputs.curves[:, i].detach(), expected[name], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(detector.anchors, expected["anchors"])

    actions = actions_of(form, expected)
    placed = detector.place_actions(outputs, actions)
    actual = placed.segments[placed.present] / LENGTH
    np.testing.assert_allclose(actual, expected["gt_boxes"][:, 1:3], rtol=0, atol=1e-6)
    curves = curve_targets(placed, LENGTH)
    for i, name in enumerate(("gt_action", "gt_start", "gt_end")):
        np.testing.assert_array_equal(curves[:, i], expected[name] > 0.5)
    labels = placed.labels + 1
    for name, boxes, threshold in (
        ("anchor", detector.anchors.expand(2, -1, -1), detector.config.match_threshold),
        ("decoded", outputs.boxes, detector.config.match_threshold),
        ("stage2", outputs.boxes, detector.config.adjust_threshold),
    ):
        positive, action = match(boxes, placed, threshold=threshold, reproduce_bugs=True)
        assigned = torch.where(positive, labels.gather(1, action), 0)
        stored = expected[f"labels_{name}"]
        np.testing.assert_array_equal(
            assigned > 0 if form == "anet" else assigned, stored > 0 if form == "anet" else stored
        )

    losses = detector.loss(outputs, actions)
    adjustment = "loss_reg_st2" if form == "anet" else "loss_bd_adjust"
    terms = {"loss_action": losses.others["action"], adjustment: losses.others["adjustment"]}
    if form == "anet":
        terms["loss_boundary"] = losses.others["start"] + losses.others["end"]
    else:
        terms |= {"loss_start": losses.others["start"], "loss_end": losses.others["end"]}
    terms |= {
        "loss_cls_dec": losses.classification,
        "loss_reg_dec": losses.regression,
        "loss_total": losses.total,
    }
    for name, term in terms.items():
        assert term.item() == pytest.approx(float(expected[name]), rel=2e-5), name
    detector.zero_grad()
    losses.total.backward()
    parameters = dict(detector.named_parameters())
    for key, norm in zip(by_rule.shapes(vsgn_rule.keys(form)), expected["grad_norm"], strict=True):
        if not key.startswith("head_enc.") and norm > 1e-5:
            gradient = parameters[key.replace("bd_refine", "bd_adjust")].grad
            assert gradient is not None
            assert gradient.norm().item() == pytest.approx(norm, rel=1e-4), key


@pytest.mark.parametrize("form", ["thumos", "anet"], scope="module")
def test_neighbours(form: str, detector: VSGN, anet_copies: dict[int, str]) -> None:
    expected = golden(form, "train")
    x, lengths = detector.batch(batch_of(form, expected, anet_copies))
    stitching = Stitching.of(lengths, LENGTH, 30, on=True)
    with torch.inference_mode():
        y = detector.xGPN.conv0(stitching.fill(x))
        for i, block in enumerate(detector.xGPN.levels_enc):
            neighbours = nearest(y, 4, stitching).sort(-1).values
            stored = np.sort(expected[f"neighbours_{i}"].astype(np.int64), -1)
            rows = (neighbours.numpy() == stored).all(-1)
            # Equal candidates (padding, or too few to choose from) are interchangeable.
            steps = y.transpose(1, 2)
            alike = torch.cdist(steps, steps, compute_mode="donot_use_mm_for_euclid_dist")
            for video, row in np.argwhere(~rows):
                actual, expected_neighbours = (set(z[video, row].tolist()) for z in (neighbours, stored))
                apart = alike[video][sorted(actual - expected_neighbours)][:, sorted(expected_neighbours - actual)]
                assert apart.min(1).values.max() < 1e-5, (i, video, row)
            y = block(y, stitching)


@pytest.mark.parametrize("form", ["thumos", "thumos_plain"], scope="module")
def test_windows_and_segments(form: str, detector: VSGN) -> None:
    expected, rows = golden(form, "infer"), vsgn_rule.features(2)
    windows = detector.windows(len(rows))
    stored = golden(form, "train")["windows_infer"]
    assert [(first, first + count - 1) for first, count in windows] == [tuple(row) for row in stored[:, 1:].tolist()]
    ambiguous = expected["proposals_per_window"][:, 3] > 0
    parts = []
    for i, (first, count) in enumerate(windows):
        assert count == expected[f"w{i}_num_frames"]
        if ambiguous[i]:
            continue
        with torch.inference_mode():
            outputs = detector._outputs([rows[first : first + count]])
        assert isinstance(outputs, VsgnOutputs)
        for name, result in (("loc", outputs.boxes), ("adjusted", outputs.adjusted)):
            np.testing.assert_allclose(result[0], expected[f"w{i}_{name}"], rtol=5e-5, atol=5e-4)
        np.testing.assert_allclose(outputs.logits[0].softmax(-1), expected[f"w{i}_score"], rtol=0, atol=1e-4)
        result, proposals = detector.decode(outputs)[0], expected[f"w{i}_proposals"]
        assert len(result) == len(proposals) == expected["proposals_per_window"][i, 2]
        ends = (result.segments + first) / 20
        check_all(np.c_[ends, result.scores, result.labels + 1], proposals, tolerance=2e-3)
        parts.append((result, first))
    # The window with ambiguous results is left out, as in the golden file.
    together = Candidates(
        np.concatenate([part.segments + np.float32(first) for part, first in parts]),
        np.concatenate([part.scores for part, _ in parts]),
        np.concatenate([part.labels for part, _ in parts]),
    )
    suppressed = detector.suppress(together, seconds_a_step=1 / 20)
    rows_found = np.c_[suppressed.segments / 20, suppressed.scores, suppressed.labels + 1]
    pred = expected["pred"]
    assert len(rows_found) == len(pred)
    check_all(rows_found, pred[:, [2, 3, 4, 1]], tolerance=0.1)
    if not ambiguous.any():
        result = detector.detect(rows, fps=20, duration=14.1, stride=1, window=1)
        long = rows_found[:, 0] < rows_found[:, 1]  # the program keeps segments outside the video with zero length
        np.testing.assert_allclose(np.c_[result.start, result.end], rows_found[long, :2], rtol=0, atol=1e-5)


def check_all(actual: npt.NDArray[Any], expected: npt.NDArray[Any], *, tolerance: float) -> None:
    """Check that at least 99 % of the expected rows [start, end, score, class] have a match."""
    matched = 0
    for start, end, score, label in expected:
        near = (np.abs(actual[:, :2] - [start, end]) <= tolerance).all(1) & (actual[:, 3] == label)
        matched += bool((near & (np.abs(actual[:, 2] - score) <= 1e-3 * score)).any())
    assert matched >= 0.99 * len(expected)


@pytest.mark.parametrize("form", ["anet"], scope="module")
def test_proposals_of_activitynet(form: str, detector: VSGN, anet_copies: dict[int, str]) -> None:
    expected = golden(form, "infer")
    anet_copies[102] = "v_d"
    rng = np.random.Generator(np.random.PCG64(11))
    for number, (video, steps) in enumerate((("v_c", 256), ("v_d", 102)), 2):
        rows, scores = streams(video, steps), rng.random(200)
        with torch.inference_mode():
            outputs = detector._outputs([rows])
        assert isinstance(outputs, VsgnOutputs)
        likely = outputs.logits[0, :, 0].sigmoid().numpy()
        order = np.argsort(-likely, kind="stable")
        np.testing.assert_allclose(likely[order], expected[f"{video}_score"], rtol=0, atol=1e-5)
        boxes = np.c_[outputs.boxes[0].numpy(), outputs.adjusted[0].numpy()][order]
        stored = np.c_[expected[f"{video}_loc"], expected[f"{video}_adjusted"]]
        same = np.isclose(boxes, stored, rtol=5e-5, atol=5e-4).all(1)  # neighbours with equal scores may be swapped
        assert same.mean() > 0.98
        duration = vsgn_rule.DURATIONS[video]
        segments = detector.detect(
            rows, fps=steps / duration, duration=duration, stride=1, window=1, video_scores=scores
        )
        pred = expected["pred"][expected["pred"][:, 0] == number]
        assert segments.score is not None
        assert len(segments) == len(pred) == 100
        check_all(
            np.c_[segments.start, segments.end, segments.score, segments.label], pred[:, [2, 3, 4, 1]], tolerance=2e-3
        )


@pytest.fixture(scope="module")
def ops() -> dict[str, Any]:
    return {key: torch.from_numpy(value) for key, value in by_rule.stored("detectors2/vsgn/ops.npz").items()}


CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def test_graph_block(ops: dict[str, Any]) -> None:
    block = GraphBlock(8, 6)
    block.load_state_dict({key.removeprefix("graph_w_"): x for key, x in ops.items() if key.startswith("graph_w_")})
    x = ops["graph_x"].requires_grad_()
    stitching = Stitching.of(ops["graph_num_frames"], 64, 6, on=True)
    assert nearest(x, 6, stitching).sort(-1).values.equal(ops["graph_neighbours"].long().sort(-1).values)
    outputs = block(x, stitching)
    outputs.backward(ops["graph_grad_out"])
    torch.testing.assert_close(outputs, ops["graph_out"], **CLOSE)
    torch.testing.assert_close(x.grad, ops["graph_grad_x"], **CLOSE)
    for name, weight in block.named_parameters():
        torch.testing.assert_close(weight.grad, ops[f"graph_grad_{name}"], **CLOSE)


def test_stitched_window(ops: dict[str, Any]) -> None:
    first, last = ops["stitch_window"].tolist()
    rows = ops["stitch_in"][None, :, first : last + 1]
    window = Stitching.of(torch.tensor([rows.shape[-1]]), 64, 6, on=True).fill(rows)
    torch.testing.assert_close(window[0], ops["stitch_out"], **CLOSE)


def test_anchors_and_codes(ops: dict[str, Any]) -> None:
    sizes = [16, 8, 4, 2, 1]
    torch.testing.assert_close(make_anchors(sizes, [1, 1.5], 4), ops["anchors_1_1.5"], rtol=0, atol=0)
    torch.testing.assert_close(make_anchors(sizes, [8, 20], 4), ops["anchors_8_20"], rtol=0, atol=0)
    torch.testing.assert_close(decode_boxes(ops["coder_pred"], ops["coder_anchors"]), ops["coder_decoded"], **CLOSE)


@pytest.mark.parametrize("case", ["match", "match_none"])
def test_matching(ops: dict[str, Any], case: str) -> None:
    truth = ops[f"{case}_gt"].numpy()
    actions = Actions.of([(truth[:, :2], truth[:, 2].astype(int))])
    boxes = ops[f"{case}_boxes"][None]
    torch.testing.assert_close(overlaps(boxes, actions)[0], ops[f"{case}_iou"], **CLOSE)
    positive, action = match(boxes, actions, threshold=0.5, reproduce_bugs=True)
    labels = torch.where(positive, actions.labels.gather(1, action), 0)[0]
    assert labels.tolist() == ops[f"{case}_labels"].tolist()
    mended, _ = match(boxes, actions, threshold=0.5)
    assert (mended <= positive).all()
    assert bool((mended < positive).any()) == (case == "match_none")


def test_boundary_adjustment(ops: dict[str, Any]) -> None:
    layers = EndShift(8)
    layers.load_state_dict({key.removeprefix("adjust_w_"): x for key, x in ops.items() if key.startswith("adjust_w_")})
    x, boxes = ops["adjust_feature"].requires_grad_(), ops["adjust_boxes"]
    offsets = layers(x, boxes, 64) - boxes
    torch.testing.assert_close(offsets[..., 0], ops["adjust_start"], **CLOSE)
    torch.testing.assert_close(offsets[..., 1], ops["adjust_end"], **CLOSE)
    (offsets.sum(-1) * ops["adjust_grad_out"]).sum().backward()
    torch.testing.assert_close(x.grad, ops["adjust_grad_feature"], **CLOSE)


def test_loss_terms_and_input_gradients(ops: dict[str, Any]) -> None:
    boxes = ops["giou_pred"].requires_grad_()
    total = generalised_iou(boxes, ops["giou_gt"]).sum()
    total.backward()
    torch.testing.assert_close(total, ops["giou_sum"], **CLOSE)
    torch.testing.assert_close(boxes.grad, ops["giou_grad"], **CLOSE)
    logits = ops["focal_logits"].requires_grad_()
    total = focal(logits[:, 0], (ops["focal_labels"] > 0).float(), alpha=0.35).sum()
    total.backward()
    torch.testing.assert_close(total, ops["focal_sum"], **CLOSE)
    torch.testing.assert_close(logits.grad, ops["focal_grad"], **CLOSE)
    network = make_detector("vsgn", **vsgn_rule.SIZES["thumos"])
    assert isinstance(network, VSGN)
    curve = ops["bce_pred"].requires_grad_()
    total = network._curve(curve, ops["bce_gt"] > 0.5, 1e-5)
    total.backward()
    torch.testing.assert_close(total, ops["bce_loss"], **CLOSE)
    torch.testing.assert_close(curve.grad, ops["bce_grad"], **CLOSE)


def test_suppression(ops: dict[str, Any]) -> None:
    rows = ops["nms_in"].numpy()
    segments, scores, labels = rows[:, :2], rows[:, 2], rows[:, 3].astype(int)
    kept_scores = hard_nms(segments, scores, labels, threshold=0.4, max_segments=80, multiclass=False)[1]
    np.testing.assert_allclose(kept_scores, scores[ops["nms_hard_keep"].numpy()], rtol=1e-6)
    scores = np.where(segments[:, 1] - segments[:, 0] < 50, scores, 0)
    kept_scores = soft_nms(segments, scores, labels, sigma=0.46, min_score=0, max_segments=79, multiclass=False)[1]
    np.testing.assert_allclose(kept_scores, ops["nms_soft_out"].numpy()[:, 2], rtol=1e-4, atol=1e-7)


def test_saved_weights_have_the_layout_of_thumos14(tmp_path: Any) -> None:
    network = make_detector("vsgn_anet_i3d", **vsgn_rule.SIZES["anet"])
    write_weights(network.state_dict(), tmp_path / "a.safetensors")
    again = make_detector("vsgn_anet_i3d", weights=tmp_path / "a.safetensors", **vsgn_rule.SIZES["anet"])
    tensors = again.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in network.state_dict().items())
