"""Object detectors of torchvision, trained on COCO: each resizes and normalises frames itself.

Labels of the library start at 1, and 0 is the background; here the first class is 0, as for every other detector.
torchvision cannot be installed beside every torch, so it is only imported when one of these is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, CheckpointError
from jostle.models.finite import OutputCheck
from jostle.models.objects.object_detector import ObjectDetector, Weights, add_object_detector
from jostle.models.recognition.image_classifier import library_module
from jostle.models.recognition.recogniser import load_weights

# In the order of the numbers that COCO gave them, from 1 to 90; ten numbers stand for nothing.
COCO = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "", "backpack", "umbrella", "", "", "handbag", "tie", "suitcase",
    "frisbee", "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard",
    "surfboard", "tennis racket", "bottle", "", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana",
    "apple", "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "", "dining table", "", "", "toilet", "", "tv", "laptop", "mouse", "remote", "keyboard",
    "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "", "book", "clock", "vase", "scissors",
    "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip
SOURCE = "tensors of the COCO_V1 file that torchvision's page on object detection links to"
HEADS = ("rpn.head", "roi_heads.box_predictor", "head")  # modules whose outputs are turned into boxes
BATCHES = "num_batches_tracked"  # tensors that frozen norms do not have


@dataclass(frozen=True)
class TorchvisionDetectorFamily:
    """Settings of one torchvision detector."""

    head: str  # name of the bias that has a number for each class, the background among them
    shapes: int  # of boxes at a place, each of which has its own numbers there
    threshold: str  # name of the setting below which the network drops a box


FASTER = TorchvisionDetectorFamily("roi_heads.box_predictor.cls_score.bias", 1, "box_score_thresh")
RETINA = TorchvisionDetectorFamily("head.classification_head.cls_logits.bias", 9, "score_thresh")
FCOS = TorchvisionDetectorFamily("head.classification_head.cls_logits.bias", 1, "score_thresh")


class TorchvisionBoxes:
    """Adapter of networks that do their own pre- and postprocessing.

    The postprocessing drops boxes that are NaN, so raw outputs of the heads are checked on their way to it.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._outputs: list[Tensor] = []
        for name, module in network.named_modules():
            if name in HEADS:
                module.register_forward_hook(self._keep)

    def __call__(self, frames: Tensor) -> Sequence[Boxes]:
        """Return the boxes of (N, 3, H, W) from 0 to 1, in pixels of the frame."""
        self._outputs.clear()
        try:
            return [_boxes(**output) for output in self._network(list(frames))]
        finally:
            outputs = {f"{number} of the heads": x.flatten()[None] for number, x in enumerate(self._outputs)}
            self._outputs.clear()
            if outputs:
                OutputCheck(outputs).finish(type(self._network).__name__)

    def _keep(self, module: nn.Module, inputs: object, output: Any) -> None:
        parts = output.values() if isinstance(output, Mapping) else output
        for part in parts:
            self._outputs += [part] if isinstance(part, Tensor) else part


def _boxes(boxes: Tensor, labels: Tensor, scores: Tensor) -> Boxes:
    valid = labels > 0  # networks of one stage may name the background
    box, label, score = boxes[valid].double(), labels[valid] - 1, scores[valid].double()
    return Boxes(box.cpu().numpy(), label.cpu().numpy(), score.cpu().numpy())


def _load(name: str, weights: Weights) -> ObjectDetector:
    """Load a torchvision network with weights."""
    family, exact, _ = DETECTORS[name]
    if not isinstance(weights, Mapping):
        raise BadValue(f"{name}: weights are tensors by name, not {weights!r}; read the file first")
    detection = library_module(name, "torchvision.models.detection", "torchvision")
    if family.head not in weights:
        raise CheckpointError(f"{name}: the weights belong to another network: they have no {family.head}", fault="F54")
    classes, rest = divmod(len(weights[family.head]), family.shapes)
    if rest:
        raise CheckpointError(
            f"{name}: the weights belong to another network: {family.head} has {len(weights[family.head])} numbers, "
            f"and {family.shapes} shapes of boxes would each need as many",
            fault="F54",
        )
    with torch.random.fork_rng(devices=[]):
        # Without a threshold: a curve of precision needs its tail.
        network: nn.Module = getattr(detection, name)(
            weights=None, weights_backbone=None, num_classes=classes, **{family.threshold: 0.0}
        )
    frozen = not any(key.endswith(BATCHES) for key in weights)
    load_weights(name, network, _with_counts(network, weights) if frozen else weights)
    if frozen and exact:
        for layer in network.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eps = 0.0
    names = COCO if classes == len(COCO) + 1 else ()
    return ObjectDetector(network, TorchvisionBoxes(network), classes=names, name=name)


def _with_counts(network: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert weights of frozen norms to those of ordinary ones, whose counters do not affect inference."""
    return {key: value for key, value in network.state_dict().items() if key.endswith(BATCHES)} | dict(weights)


# The family; whether frozen norms divide by the very variance, as weights were published before torchvision added a
# small number to it, and it takes that number back for them; and what each is.
DETECTORS = {
    "fasterrcnn_resnet50_fpn": (FASTER, True, "Faster R-CNN with a ResNet-50 and a feature pyramid."),
    "fasterrcnn_resnet50_fpn_v2": (
        FASTER,
        False,
        "Faster R-CNN with a ResNet-50 and a feature pyramid, trained longer and with norms in its heads.",
    ),
    "fasterrcnn_mobilenet_v3_large_fpn": (FASTER, False, "Faster R-CNN with a large MobileNet of the third version."),
    "retinanet_resnet50_fpn": (RETINA, True, "RetinaNet with a ResNet-50 and a feature pyramid: anchors in one stage."),
    "fcos_resnet50_fpn": (
        FCOS,
        False,
        "FCOS with a ResNet-50 and a feature pyramid: no anchors, distances from each place.",
    ),
}
for _name, (_family, _exact, _summary) in DETECTORS.items():
    add_object_detector(_name, _summary, _load, source=SOURCE)
