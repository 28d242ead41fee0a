"""The transcribed detectors against the originals' outputs: a yardstick has to be right before it measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

from benchmarks.transcriptions.detector_steps import (  # noqa: E402
    candidates,
    losses,
    soft_nms_compiled,
    soft_nms_numpy,
    suppressed,
)
from benchmarks.transcriptions.detectors import Original, Sizes  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "detectors"
pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason="no golden data at ../shared/golden/detectors")

DETECTORS = ("actionformer", "tridet", "temporalmaxer")
SIZES = {"input_dim": 32, "dim": 64, "classes": 5, "max_length": 576, "mlp": 256, "sgp_mlp": 96}
LEVELS = 6


@pytest.fixture(scope="module", params=DETECTORS)
def original(request: pytest.FixtureRequest) -> Any:
    with torch.random.fork_rng(devices=[]):
        net = Original(request.param, Sizes(**SIZES, max_segments=2000 if request.param == "tridet" else 200)).eval()
    net.load_state_dict(safetensors_torch.load_file(GOLDEN / request.param / "model.safetensors"))
    return net


def features(video: str) -> Any:
    return torch.from_numpy(np.load(GOLDEN / "data" / "clean" / f"{video}.npy").T.copy())


@pytest.mark.parametrize("video", ["vid_a", "vid_b"])
def test_outputs_and_predictions(original: Any, video: str) -> None:
    data = np.load(GOLDEN / original.name / f"infer_{video}.npz")
    with torch.inference_mode():
        outputs = original([features(video)])
        for level in range(LEVELS):
            mask = data[f"mask_l{level}"]
            np.testing.assert_array_equal(outputs["mask"][level][0], mask)
            np.testing.assert_array_equal(outputs["points"][level], data[f"points_l{level}"])
            logits, offsets = outputs["cls"][level][0], original.offsets(outputs, level)[0]
            np.testing.assert_allclose(logits[mask], data[f"cls_logits_l{level}"][mask], atol=5e-5)
            np.testing.assert_allclose(offsets[mask], data[f"offsets_l{level}"][mask], atol=1e-4)
        found = candidates(original, outputs, 0)
    assert len(found[1]) == len(data["pre_nms_scores"])
    np.testing.assert_allclose(found[1], data["pre_nms_scores"], atol=1e-5)
    duration = json.loads((GOLDEN / "data" / "annotations.json").read_text())["database"][video]["duration"]
    for suppress in (soft_nms_numpy, soft_nms_compiled):
        segments, scores, labels = suppressed(found, original.sizes.max_segments, suppress)
        seconds = np.clip((segments * 4 + 8) / 30, 0, duration)
        expected = data["pred_segments"], data["pred_scores"], data["pred_labels"]
        assert partnered((seconds, scores, labels), expected) == len(expected[0]) == len(seconds)


def partnered(found: Any, expected: Any) -> int:
    """How many detections have one of the same label with ends within 2 ms and a score within a thousandth.

    Neighbours whose scores agree to six digits may change places, so rows are not compared one by one.
    """
    ends = np.abs(found[0][:, None] - expected[0]).max(-1) < 2e-3
    scores = np.abs(found[1][:, None] / expected[1] - 1) < 1e-3
    return int((ends & scores & (found[2][:, None] == expected[2])).any(1).sum())


def test_losses_and_gradients(original: Any) -> None:
    data = np.load(GOLDEN / original.name / "train.npz")
    segments, labels = torch.from_numpy(data["segments_grid"]), torch.from_numpy(data["labels"])
    own = [torch.from_numpy(data["video_of_segment"] == i) for i in range(2)]
    original.normaliser = 100.0
    outputs = original([features("vid_a"), features("vid_b")])
    made = losses(original, outputs, [segments[rows] for rows in own], [labels[rows] for rows in own])
    for name, key in (("cls", "cls_loss"), ("reg", "reg_loss"), ("total", "final_loss")):
        assert made[name].item() == pytest.approx(float(data[key]), rel=1e-5)
    assert original.normaliser == pytest.approx(float(data["loss_normalizer_after"]))
    original.zero_grad()
    made["total"].backward()
    parameters = dict(original.named_parameters())
    names = (GOLDEN / original.name / "grad_keys.txt").read_text().split()
    norms = np.array([0.0 if (g := parameters[name].grad) is None else g.norm().item() for name in names])
    true = data["grad_norm"] > 1e-5  # below it the true gradient is 0 and the rest is rounding
    np.testing.assert_allclose(norms[true], data["grad_norm"][true], rtol=1e-3)
