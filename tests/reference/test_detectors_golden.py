"""Detectors against results of the public implementations; `tests/golden/detectors/README.md` describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden.by_rule import DETECTORS, SIZES, VIDEOS, features, stored

torch = pytest.importorskip("torch")

from golden.public_checkpoints import NORMALISER, drawn, write_opentad, write_original
from jostle.models.checkpoints import write_weights
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import Detector, make_detector


@pytest.fixture(scope="module", params=DETECTORS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def golden(name: str) -> dict[str, Any]:
    return stored(f"detectors/{name}.npz")


@pytest.fixture(scope="module")
def weights(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / f"{name}.safetensors"
    write_weights(drawn(name), path)
    return path


def build_detector(name: str, weights: Path, rules: str = "original", **more: Any) -> Detector[Any]:
    if rules == "opentad" and name != "temporalmaxer":
        more["max_segments"] = 2000
    return make_detector(name, weights=weights, rules=rules, **SIZES[name], **more)


def check_raw(detector: Detector[Any], golden: dict[str, Any], video: str, prefix: str = "") -> None:
    raw = detector.raw(features(video))
    key = f"{prefix}{video}"
    assert [int(mask.sum()) for mask in raw["mask"]] == golden[f"{key}_sizes"].tolist()
    assert [len(mask) for mask in raw["mask"]] == golden[f"{key}_padded"].tolist()
    for ours, theirs, tolerance in (("cls", "cls_logits", 1e-4), ("offsets", "offsets", 2e-4)):
        actual = np.concatenate([x[mask] for x, mask in zip(raw[ours], raw["mask"], strict=True)])
        np.testing.assert_allclose(actual, golden[f"{key}_{theirs}"], rtol=0, atol=tolerance)


def check_segments(detector: Detector[Any], golden: dict[str, Any], video: str, prefix: str = "") -> None:
    segments = detector.detect(features(video), fps=30, duration=VIDEOS[video][2])
    ends, scores, labels = (golden[f"{prefix}{video}_pred_{x}"] for x in ("segments", "scores", "labels"))
    has_length = ends[:, 0] < ends[:, 1]  # OpenTAD does not drop segments without length
    ends, scores, labels = ends[has_length], scores[has_length], labels[has_length]
    assert has_length.sum() >= len(has_length) - 1
    assert len(segments) == len(scores)
    assert segments.score is not None
    assert (np.diff(segments.score) <= 0).all()
    for (start, end), score, label in zip(ends, scores, labels, strict=True):
        near = (np.abs(segments.start - start) < 2e-3) & (np.abs(segments.end - end) < 2e-3) & (segments.label == label)
        assert (near & (np.abs(segments.score - score) < 1e-3 * score)).any()


@pytest.mark.parametrize("video", VIDEOS)
@pytest.mark.parametrize("rules", ["original", "opentad"])
def test_outputs_and_segments(name: str, golden: dict[str, Any], weights: Path, video: str, rules: str) -> None:
    detector = build_detector(name, weights, rules)
    prefix = "opentad_" if rules == "opentad" else ""
    check_raw(detector, golden, video, prefix)
    check_segments(detector, golden, video, prefix)


@pytest.mark.parametrize("video", VIDEOS)
def test_candidates(name: str, golden: dict[str, Any], weights: Path, video: str) -> None:
    candidates = build_detector(name, weights).candidates(features(video))
    assert len(candidates) == len(golden[f"{video}_pre_nms_scores"])
    np.testing.assert_allclose(candidates.scores, golden[f"{video}_pre_nms_scores"], rtol=0, atol=1e-5)
    same = candidates.labels == golden[f"{video}_pre_nms_labels"]  # neighbours with nearly equal scores may be swapped
    assert same.mean() > 0.99
    apart = np.abs(candidates.segments - golden[f"{video}_pre_nms_segments"]).max(1)
    assert (apart < 1e-2).mean() > 0.99


def test_losses_targets_and_gradients(name: str, golden: dict[str, Any], weights: Path) -> None:
    detector = build_detector(name, weights)
    detector.training = True  # only the module itself, so that its children have no dropout
    inputs, lengths = detector.batch([features(video) for video in VIDEOS])
    segments, labels, video = (golden[f"train_{x}"] for x in ("segments_grid", "labels", "video_of_segment"))
    actions = Actions.of([(segments[video == i], labels[video == i]) for i in range(2)])
    outputs = detector(inputs, lengths)

    targets = detector.assign(outputs, actions, radius=1.5)
    positive = golden["train_pos"]
    np.testing.assert_array_equal(outputs.mask.numpy(), golden["train_valid"])
    np.testing.assert_array_equal(targets.positive.numpy(), positive)
    np.testing.assert_array_equal(targets.classes.numpy(), golden["train_gt_cls"])
    np.testing.assert_allclose(targets.offsets.numpy()[positive], golden["train_gt_offset"][positive], atol=1e-5)

    losses = detector.loss(outputs, actions)
    losses.total.backward()
    assert int(losses.positives) == 27
    assert float(detector.loss_normalizer) == pytest.approx(float(golden["train_loss_normalizer_after"]), rel=1e-6)
    for ours, theirs in (("classification", "cls_loss"), ("regression", "reg_loss"), ("total", "final_loss")):
        assert getattr(losses, ours).item() == pytest.approx(float(golden[f"train_{theirs}"]), rel=1e-5)
    gradients = dict(detector.named_parameters())
    for key, norm in zip(golden["train_grad_keys"].tolist(), golden["train_grad_norm"], strict=True):
        if norm > 1e-5:  # smaller gradients are zero except for rounding
            assert gradients[key].grad.norm().item() == pytest.approx(norm, rel=1e-3), key


def test_public_checkpoints(name: str, golden: dict[str, Any], tmp_path: Path) -> None:
    """Checkpoints of the originals and of OpenTAD give equal results: averaged weights are chosen, names mapped."""
    original = make_detector(name, weights=write_original(name, tmp_path), **SIZES[name])
    opentad_detector = make_detector(name, weights=write_opentad(name, tmp_path), **SIZES[name])
    assert opentad_detector.config.rules == "opentad"
    assert opentad_detector.loss_normalizer.item() == NORMALISER
    for video in VIDEOS:
        check_raw(original, golden, video)
        check_raw(opentad_detector, golden, video, "opentad_")
