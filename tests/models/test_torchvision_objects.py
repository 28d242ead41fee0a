"""torchvision's object detectors: the library's own boxes, numbered from its first class, and none dropped."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from jostle.errors import BadValue, CheckpointError, MissingExtra
from jostle.models.objects.object_detector import load_object_detector, object_detectors
from jostle.models.objects.torchvision import COCO
from jostle.models.weights.shipped.sources import read_sources

NAMES = {
    "fasterrcnn_resnet50_fpn": "FasterRCNN_ResNet50_FPN_Weights",
    "fasterrcnn_resnet50_fpn_v2": "FasterRCNN_ResNet50_FPN_V2_Weights",
    "fasterrcnn_mobilenet_v3_large_fpn": "FasterRCNN_MobileNet_V3_Large_FPN_Weights",
    "retinanet_resnet50_fpn": "RetinaNet_ResNet50_FPN_Weights",
    "fcos_resnet50_fpn": "FCOS_ResNet50_FPN_Weights",
}


def suppressed(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """What torchvision's compiled operator of this name gives."""
    ops = importlib.import_module("torchvision.ops.boxes")
    order, kept = scores.argsort(descending=True, stable=True), []
    overlap = ops.box_iou(boxes, boxes)
    while len(order):
        kept.append(int(order[0]))
        order = order[1:][overlap[order[0], order[1:]] <= iou_threshold]
    return torch.tensor(kept, dtype=torch.int64)


@pytest.fixture
def detection(torchvision_video: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """torchvision's detectors; where its compiled half does not load, boxes are suppressed by the above."""
    if not importlib.import_module("torchvision.extension")._has_ops():
        monkeypatch.setattr("torchvision.ops.boxes.nms", suppressed)
        align = importlib.import_module("torchvision.ops.roi_align")
        monkeypatch.setattr(align, "_roi_align", align._roi_align.__wrapped__)  # as it is, not compiled first
    return importlib.import_module("torchvision.models.detection")


def built(detection: ModuleType, name: str, classes: int, **settings: Any) -> torch.nn.Module:
    torch.manual_seed(1)
    made = getattr(detection, name)(weights=None, weights_backbone=None, num_classes=classes, **settings)
    assert isinstance(made, torch.nn.Module)
    return made.eval()


@pytest.mark.parametrize("name", NAMES)
def test_boxes_are_the_librarys_own(name: str, detection: ModuleType) -> None:
    two_stages = name.startswith("faster")
    few: dict[str, Any] = (
        {"box_score_thresh": 0.0, "rpn_post_nms_top_n_test": 40} if two_stages else {"score_thresh": 0.0}
    )
    network = built(detection, name, 4, min_size=64, max_size=96, **few)
    detector = load_object_detector(name, weights=network.state_dict())
    ours: Any = detector.network
    ours.transform.min_size, ours.transform.max_size = (64,), 96
    if two_stages:
        ours.rpn._post_nms_top_n["testing"] = 40  # so that it does not take a minute
    frames = np.random.default_rng(0).integers(0, 256, (2, 50, 70, 3), np.uint8)
    found = detector(frames)
    assert detector.classes == ()
    for frame, boxes in zip(frames, found, strict=True):
        with torch.inference_mode():
            (theirs,) = network([torch.tensor(frame).permute(2, 0, 1) / 255])
        named = theirs["labels"].numpy() > 0
        assert named.sum() > 10
        assert np.array_equal(boxes.label, theirs["labels"].numpy()[named] - 1)
        assert np.allclose(boxes.box, theirs["boxes"].numpy()[named], atol=1e-4)
        assert np.allclose(boxes.sure, theirs["scores"].numpy()[named], atol=1e-6)
        assert set(boxes.label) <= {0, 1, 2}
        assert boxes.box[:, 2].max() <= 70
        assert boxes.box[:, 3].max() <= 50


def test_nothing_is_dropped_for_a_low_score(detection: ModuleType) -> None:
    tensors = built(detection, "fasterrcnn_mobilenet_v3_large_fpn", 91).state_dict()
    detector = load_object_detector("fasterrcnn_mobilenet_v3_large_fpn", weights=tensors)
    detector.network.transform.min_size = (64,)  # type: ignore[union-attr]
    (found,) = detector(np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), np.uint8))
    # Ninety classes share what is one in all, so that the library's own threshold would leave none.
    assert len(found) > 10
    assert found.sure.max() < 0.05


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_where_the_library_publishes_them(name: str, detection: ModuleType) -> None:
    published = getattr(detection, NAMES[name]).COCO_V1
    place = read_sources()["objectdetectors"][name]
    assert (place.url, place.mebibytes) == (published.url, published.meta["_file_size"])
    assert place.sha256 in place.url
    assert set(place.has) <= set(built(detection, name, 3).state_dict())
    assert tuple(label.replace("N/A", "") for label in published.meta["categories"][1:]) == COCO


@pytest.mark.parametrize(("name", "added"), [("retinanet_resnet50_fpn", 0.0), ("fcos_resnet50_fpn", 1e-5)])
def test_frozen_norms_are_those_of_the_published_file(name: str, added: float, detection: ModuleType) -> None:
    tensors = {key: value for key, value in built(detection, name, 91).state_dict().items() if "num_b" not in key}
    detector = load_object_detector(name, weights=tensors)
    assert detector.classes == COCO
    norms = [layer for layer in detector.network.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    assert {layer.eps for layer in norms} == {added}


def test_what_does_not_fit_is_said(detection: ModuleType) -> None:
    tensors = built(detection, "fcos_resnet50_fpn", 4).state_dict()
    with pytest.raises(CheckpointError, match=r"have no roi_heads\.box_predictor\.cls_score\.bias"):
        load_object_detector("fasterrcnn_resnet50_fpn", weights=tensors)
    with pytest.raises(CheckpointError, match="has 4 numbers, and 9 shapes"):
        load_object_detector("retinanet_resnet50_fpn", weights=tensors)
    with pytest.raises(CheckpointError, match="belong to another network"):
        load_object_detector("fcos_resnet50_fpn", weights=tensors | {"more": torch.zeros(1)})


def test_without_torchvision_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision.models.detection", None)
    with pytest.raises(MissingExtra, match=r"fcos_resnet50_fpn needs packages .*jostle\[torchvision\]"):
        load_object_detector("fcos_resnet50_fpn", weights={})
    with pytest.raises(BadValue, match="read the file first"):
        object_detectors["fcos_resnet50_fpn"].load("some.pth")
