"""Object detectors of torchvision: equal boxes, labels from the first class on, and no score threshold."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from jostle.errors import BadValue, CheckpointError
from jostle.models.loading.objects import load_object_detector
from jostle.models.objects.object_detector import object_detectors
from jostle.models.objects.torchvision import COCO
from jostle.models.weights.sources import read_sources

NAMES = {
    "fasterrcnn_resnet50_fpn": "FasterRCNN_ResNet50_FPN_Weights",
    "fasterrcnn_resnet50_fpn_v2": "FasterRCNN_ResNet50_FPN_V2_Weights",
    "fasterrcnn_mobilenet_v3_large_fpn": "FasterRCNN_MobileNet_V3_Large_FPN_Weights",
    "retinanet_resnet50_fpn": "RetinaNet_ResNet50_FPN_Weights",
    "fcos_resnet50_fpn": "FCOS_ResNet50_FPN_Weights",
}


def reference_nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Greedy NMS with the result of torchvision's compiled operator."""
    ops = importlib.import_module("torchvision.ops.boxes")
    order, indices = scores.argsort(descending=True, stable=True), []
    overlap = ops.box_iou(boxes, boxes)
    while len(order):
        indices.append(int(order[0]))
        order = order[1:][overlap[order[0], order[1:]] <= iou_threshold]
    return torch.tensor(indices, dtype=torch.int64)


@pytest.fixture
def detection(torchvision_video: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Detection models of torchvision, with `reference_nms` if its compiled operators do not load."""
    if not importlib.import_module("torchvision.extension")._has_ops():
        monkeypatch.setattr("torchvision.ops.boxes.nms", reference_nms)
        align = importlib.import_module("torchvision.ops.roi_align")
        monkeypatch.setattr(align, "_roi_align", align._roi_align.__wrapped__)  # without compiling it first
    return importlib.import_module("torchvision.models.detection")


def build_network(detection: ModuleType, name: str, classes: int, **settings: Any) -> torch.nn.Module:
    torch.manual_seed(1)
    network = getattr(detection, name)(weights=None, weights_backbone=None, num_classes=classes, **settings)
    assert isinstance(network, torch.nn.Module)
    return network.eval()


@pytest.mark.parametrize("name", NAMES)
def test_boxes_equal_the_library(name: str, detection: ModuleType) -> None:
    two_stages = name.startswith("faster")
    limits: dict[str, Any] = (
        {"box_score_thresh": 0.0, "rpn_post_nms_top_n_test": 40} if two_stages else {"score_thresh": 0.0}
    )
    network = build_network(detection, name, 4, min_size=64, max_size=96, **limits)
    detector = load_object_detector(name, weights=network.state_dict())
    own_network: Any = detector.network
    own_network.transform.min_size, own_network.transform.max_size = (64,), 96
    if two_stages:
        own_network.rpn._post_nms_top_n["testing"] = 40  # for speed
    frames = np.random.default_rng(0).integers(0, 256, (2, 50, 70, 3), np.uint8)
    results = detector(frames)
    assert detector.classes == ()
    for frame, boxes in zip(frames, results, strict=True):
        with torch.inference_mode():
            (expected,) = network([torch.tensor(frame).permute(2, 0, 1) / 255])
        is_object = expected["labels"].numpy() > 0
        assert is_object.sum() > 10
        assert np.array_equal(boxes.label, expected["labels"].numpy()[is_object] - 1)
        assert np.allclose(boxes.box, expected["boxes"].numpy()[is_object], atol=1e-4)
        assert np.allclose(boxes.sure, expected["scores"].numpy()[is_object], atol=1e-6)
        assert set(boxes.label) <= {0, 1, 2}
        assert boxes.box[:, 2].max() <= 70
        assert boxes.box[:, 3].max() <= 50


def test_boxes_with_low_scores_are_kept(detection: ModuleType) -> None:
    tensors = build_network(detection, "fasterrcnn_mobilenet_v3_large_fpn", 91).state_dict()
    detector = load_object_detector("fasterrcnn_mobilenet_v3_large_fpn", weights=tensors)
    detector.network.transform.min_size = (64,)  # type: ignore[union-attr]
    (boxes,) = detector(np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), np.uint8))
    # With 90 classes every score is low, so the default threshold of the library would drop all boxes.
    assert len(boxes) > 10
    assert boxes.sure.max() < 0.05


@pytest.mark.parametrize("name", NAMES)
def test_weight_sources_equal_those_of_the_library(name: str, detection: ModuleType) -> None:
    published = getattr(detection, NAMES[name]).COCO_V1
    source = read_sources()["objectdetectors"][name]
    assert (source.url, source.mebibytes) == (published.url, published.meta["_file_size"])
    assert source.sha256 in source.url
    assert set(source.has) <= set(build_network(detection, name, 3).state_dict())
    assert tuple(label.replace("N/A", "") for label in published.meta["categories"][1:]) == COCO


@pytest.mark.parametrize(("name", "epsilon"), [("retinanet_resnet50_fpn", 0.0), ("fcos_resnet50_fpn", 1e-5)])
def test_batch_norm_epsilon_equals_the_published_file(name: str, epsilon: float, detection: ModuleType) -> None:
    tensors = {
        key: value for key, value in build_network(detection, name, 91).state_dict().items() if "num_b" not in key
    }
    detector = load_object_detector(name, weights=tensors)
    assert detector.classes == COCO
    norms = [layer for layer in detector.network.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    assert {layer.eps for layer in norms} == {epsilon}


def test_mismatched_weights_are_refused(detection: ModuleType) -> None:
    tensors = build_network(detection, "fcos_resnet50_fpn", 4).state_dict()
    with pytest.raises(CheckpointError, match=r"have no roi_heads\.box_predictor\.cls_score\.bias"):
        load_object_detector("fasterrcnn_resnet50_fpn", weights=tensors)
    with pytest.raises(CheckpointError, match="has 4 numbers, and 9 shapes"):
        load_object_detector("retinanet_resnet50_fpn", weights=tensors)
    with pytest.raises(CheckpointError, match="belong to another network"):
        load_object_detector("fcos_resnet50_fpn", weights=tensors | {"more": torch.zeros(1)})


def test_weights_are_read_before() -> None:
    with pytest.raises(BadValue, match="read the file first"):
        object_detectors["fcos_resnet50_fpn"].load("some.pth")
