"""Query-based object detectors of transformers, such as DETR, from a folder on disk.

The folder is one that `save_pretrained` wrote or a copy of a published one. Its `config.json` says the network and the
names of classes; its `preprocessor_config.json` how frames are prepared, and where there is none, the family's own way
is taken. We prepare frames ourselves, since the library's own way needs torchvision.

Of each query the best class is kept. The library gives some networks' boxes once for every class that scores well,
which would be wrong boxes where classes do not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, CheckpointError
from jostle.models.finite import OutputCheck
from jostle.models.objects.object_detector import ObjectDetector, Weights, add_object_detector
from jostle.models.transformers_folder import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    SOURCE,
    Triple,
    pretrained,
    read_settings,
    scale_of,
)

Edges = tuple[int, int | None]  # short side, and the most of the long one
BICUBIC = 3  # as Pillow numbers it
UNNAMED = re.compile(r"LABEL_\d+")  # what the library calls a class without a name


@dataclass(frozen=True)
class ModelType:
    """One `model_type` of a family."""

    network: str  # name of its class in transformers
    rest: bool = False  # whether the last class is "nothing": then classes compete, and else each is judged alone


@dataclass(frozen=True)
class TransformersDetectorFamily:
    """Networks that are loaded under one name."""

    name: str
    variants: Mapping[str, ModelType]  # by `model_type`
    defaults: Mapping[str, Any]  # settings without a `preprocessor_config.json`


DETR = TransformersDetectorFamily(
    "detr",
    {
        "detr": ModelType("DetrForObjectDetection", rest=True),
        "conditional_detr": ModelType("ConditionalDetrForObjectDetection"),
        "deformable_detr": ModelType("DeformableDetrForObjectDetection"),
    },
    {"size": {"shortest_edge": 800, "longest_edge": 1333}},
)
RT_DETR = TransformersDetectorFamily(
    "rt_detr",
    {"rt_detr": ModelType("RTDetrForObjectDetection"), "rt_detr_v2": ModelType("RTDetrV2ForObjectDetection")},
    {"size": {"height": 640, "width": 640}, "do_normalize": False},
)
FAMILIES = {family.name: family for family in (DETR, RT_DETR)}


@dataclass(frozen=True)
class ObjectPreprocessing:
    """Preprocessing of frames for the network."""

    # (height, width) whatever the frame's shape, `Edges` that keep it, or None for frames as they are
    size: tuple[int, int] | None
    edges: Edges | None
    mode: str  # of interpolation
    mean: Triple
    std: Triple

    @classmethod
    def of(cls, where: str, settings: Mapping[str, Any]) -> ObjectPreprocessing:
        """Read the settings of a `preprocessor_config.json`."""
        mean, std = scale_of(settings, IMAGENET_MEAN, IMAGENET_STD)
        mode = "bicubic" if settings.get("resample") == BICUBIC else "bilinear"
        size = settings.get("size")
        if not settings.get("do_resize", True):
            return cls(None, None, mode, mean, std)
        if isinstance(size, int):  # as older folders have it
            return cls(None, (size, settings.get("max_size")), mode, mean, std)
        if isinstance(size, Mapping) and "shortest_edge" in size:
            return cls(None, (size["shortest_edge"], size.get("longest_edge")), mode, mean, std)
        if isinstance(size, Mapping) and {"height", "width"} <= set(size):
            return cls((size["height"], size["width"]), None, mode, mean, std)
        raise CheckpointError(
            f"{where}: size is {size!r}; it has a height and a width, or a shortest and a longest edge", fault="F53"
        )

    def __call__(self, frames: Tensor) -> Tensor:
        """Return (N, 3, h, w) of (N, 3, H, W) from 0 to 1."""
        height, width = frames.shape[2:]
        size = self.size or (resized(height, width, *self.edges) if self.edges else (height, width))
        if size != (height, width):
            frames = F.interpolate(frames, size, mode=self.mode, antialias=True).clamp(0, 1)
        mean, std = (frames.new_tensor(values).view(3, 1, 1) for values in (self.mean, self.std))
        return (frames - mean) / std


def resized(height: int, width: int, shortest: int, longest: int | None) -> tuple[int, int]:
    """Return the size of a frame whose short side becomes `shortest`, or less if the long side is too long.

    >>> resized(480, 640, 800, 1333), resized(240, 640, 800, 1333)
    ((800, 1066), (500, 1333))
    """
    short, long = min(height, width), max(height, width)
    exact: float = shortest
    if longest is not None and long / short * shortest > longest:
        exact = longest * short / long
    if short == round(exact):
        return height, width
    other = int(exact * long / short)
    return (round(exact), other) if height <= width else (other, round(exact))


class QueryBoxes:
    """Adapter of networks that predict classes and a box for each query."""

    def __init__(self, network: nn.Module, prepare: ObjectPreprocessing, *, rest: bool) -> None:
        self._network, self._prepare, self._rest = network, prepare, rest

    def __call__(self, frames: Tensor) -> Sequence[Boxes]:
        """Return the boxes of (N, 3, H, W) from 0 to 1, in pixels of the frame."""
        height, width = frames.shape[2:]
        output = self._network(pixel_values=self._prepare(frames))
        OutputCheck({"logits": output.logits, "pred_boxes": output.pred_boxes}).finish(type(self._network).__name__)
        scores = output.logits.softmax(-1)[..., :-1] if self._rest else output.logits.sigmoid()
        best, label = scores.double().max(-1)
        middle, size = output.pred_boxes.double().split(2, -1)
        box = torch.cat([middle - size / 2, middle + size / 2], -1).cpu().numpy() * np.array([width, height] * 2)
        return [Boxes(*one) for one in zip(box, label.cpu().numpy(), best.cpu().numpy(), strict=True)]


def _load(name: str, weights: Weights) -> ObjectDetector:
    family = FAMILIES[name]
    if isinstance(weights, Mapping):
        raise BadValue(f"{family.name}: weights are a folder with config.json and model.safetensors, not tensors")
    folder = Path(weights)
    model_type = str(read_settings(folder / "config.json", family.name).get("model_type"))
    if model_type not in family.variants:
        other = next((one.name for one in FAMILIES.values() if model_type in one.variants), None)
        hint = f"; load it as {other!r}" if other else ""
        known = " or ".join(family.variants)
        raise CheckpointError(f"{folder}: holds a {model_type!r}, not a {known}{hint}", fault="F54")
    variant, file = family.variants[model_type], folder / "preprocessor_config.json"
    settings = {**family.defaults, **(read_settings(file, family.name) if file.is_file() else {})}
    prepare = ObjectPreprocessing.of(str(file), settings)
    network = pretrained(folder, family.name, variant.network, "head that finds boxes")
    find = QueryBoxes(network, prepare, rest=variant.rest)
    return ObjectDetector(network, find, classes=_names(network.config), name=family.name)


def _names(config: Any) -> tuple[str, ...]:
    names = [config.id2label[i] for i in range(config.num_labels)]
    if all(UNNAMED.fullmatch(name) for name in names):
        return ()
    return tuple("" if name == "N/A" else name for name in names)


# What each is, and where public weights are.
DETECTORS = {
    "detr": (
        "DETR, Conditional DETR or Deformable DETR: a transformer that answers queries with boxes.",
        "facebook/detr-resnet-50",
    ),
    "rt_detr": (
        "RT-DETR, first or second version: the same in real time, on frames of one size.",
        "PekingU/rtdetr_r50vd",
    ),
}
for _name, (_summary, _repository) in DETECTORS.items():
    add_object_detector(_name, _summary, _load, source=SOURCE.format(_repository), takes="folder")
