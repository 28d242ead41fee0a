"""Transcribed detectors of the benchmarks against the outputs of the originals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from golden.by_rule import DETECTORS, VIDEOS, features, stored

torch = pytest.importorskip("torch")

from bench.transcriptions.detector_steps import (
    compute_losses,
    decode_candidates,
    soft_nms_compiled,
    soft_nms_numpy,
    suppress_candidates,
)
from bench.transcriptions.detectors import Original, Sizes
from bench.transcriptions.vsgn import plain_vsgn

from golden.public_checkpoints import drawn
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import make_detector

SIZES = {"input_dim": 32, "dim": 64, "classes": 5, "max_length": 576, "mlp": 256, "sgp_mlp": 96}


@pytest.fixture(scope="module", params=DETECTORS)
def original(request: pytest.FixtureRequest) -> Any:
    with torch.random.fork_rng(devices=[]):
        net = Original(request.param, Sizes(**SIZES, max_segments=2000 if request.param == "tridet" else 200)).eval()
    net.load_state_dict(drawn(request.param))
    return net


def columns(video: str) -> Any:
    return torch.from_numpy(features(video).T.copy())


@pytest.mark.parametrize("video", VIDEOS)
def test_outputs_and_predictions(original: Any, video: str) -> None:
    data = stored(f"detectors/{original.name}.npz")
    with torch.inference_mode():
        outputs = original([columns(video)])
        np.testing.assert_array_equal(np.concatenate(outputs["points"]), data["points"])
        masks = [mask[0].numpy() for mask in outputs["mask"]]
        assert [int(mask.sum()) for mask in masks] == data[f"{video}_sizes"].tolist()
        assert [len(mask) for mask in masks] == data[f"{video}_padded"].tolist()
        logits = [outputs["cls"][level][0][mask] for level, mask in enumerate(masks)]
        offsets = [original.offsets(outputs, level)[0][mask] for level, mask in enumerate(masks)]
        np.testing.assert_allclose(np.concatenate(logits), data[f"{video}_cls_logits"], atol=5e-5)
        np.testing.assert_allclose(np.concatenate(offsets), data[f"{video}_offsets"], atol=1e-4)
        predictions = decode_candidates(original, outputs, 0)
    assert len(predictions[1]) == len(data[f"{video}_pre_nms_scores"])
    np.testing.assert_allclose(predictions[1], data[f"{video}_pre_nms_scores"], atol=1e-5)
    for suppress in (soft_nms_numpy, soft_nms_compiled):
        segments, scores, labels = suppress_candidates(predictions, original.sizes.max_segments, suppress)
        seconds = np.clip((segments * 4 + 8) / 30, 0, VIDEOS[video][2])
        expected = [data[f"{video}_pred_{x}"] for x in ("segments", "scores", "labels")]
        assert count_matches((seconds, scores, labels), expected) == len(expected[0]) == len(seconds)


def count_matches(actual: Any, expected: Any) -> int:
    """Count detections that match one of the same label, with ends within 2 ms and a score within a thousandth.

    Neighbours whose scores agree to six digits may change places, so rows are not compared one by one.
    """
    ends = np.abs(actual[0][:, None] - expected[0]).max(-1) < 2e-3
    scores = np.abs(actual[1][:, None] / expected[1] - 1) < 1e-3
    return int((ends & scores & (actual[2][:, None] == expected[2])).any(1).sum())


def test_losses_and_gradients(original: Any) -> None:
    data = stored(f"detectors/{original.name}.npz")
    segments, labels = torch.from_numpy(data["train_segments_grid"]), torch.from_numpy(data["train_labels"]).long()
    own = [torch.from_numpy(data["train_video_of_segment"] == i) for i in range(2)]
    original.normaliser = 100.0
    outputs = original([columns(video) for video in VIDEOS])
    terms = compute_losses(original, outputs, [segments[rows] for rows in own], [labels[rows] for rows in own])
    for name, key in (("cls", "cls_loss"), ("reg", "reg_loss"), ("total", "final_loss")):
        assert terms[name].item() == pytest.approx(float(data[f"train_{key}"]), rel=1e-5)
    assert original.normaliser == pytest.approx(float(data["train_loss_normalizer_after"]))
    original.zero_grad()
    terms["total"].backward()
    parameters = dict(original.named_parameters())
    names = data["train_grad_keys"].tolist()
    norms = np.array([0.0 if (g := parameters[name].grad) is None else g.norm().item() for name in names])
    true = data["train_grad_norm"] > 1e-5  # smaller gradients are only rounding of 0
    np.testing.assert_allclose(norms[true], data["train_grad_norm"][true], rtol=1e-3)


@pytest.mark.parametrize("stitch", [True, False])
def test_vsgn_with_graph_edges_equals_vsgn(stitch: bool) -> None:
    """The operators that the benchmark uses in VSGN give the same outputs, losses and gradients."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        detector = make_detector("vsgn_puppets", input_dim=12, dim=32, max_length=160, stitch=stitch).train()
    draw = torch.Generator().manual_seed(1)
    features, lengths = torch.randn(2, 12, 160, generator=draw), torch.tensor([160, 50])
    features[1, :, 50:] = 0
    actions = Actions.of([([[10.0, 30.0], [60.0, 130.0]], [0, 3]), ([[5.0, 20.0]], [1])], "cpu")

    def step() -> dict[str, Any]:
        detector.zero_grad(set_to_none=True)
        outputs = detector(features, lengths)
        losses = detector.loss(outputs, actions)
        losses.total.backward()
        slopes = {name: weight.grad.clone() for name, weight in detector.named_parameters()}
        return {"logits": outputs.logits, "adjusted": outputs.adjusted, "total": losses.total, **slopes}

    ours = step()
    with plain_vsgn():
        plain = step()
    for name, value in ours.items():
        torch.testing.assert_close(
            plain[name], value, atol=1e-4, rtol=1e-4, msg=lambda message, name=name: f"{name}: {message}"
        )
