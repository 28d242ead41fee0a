"""Object detectors of transformers that answer queries, DETR and its kin, from a folder on disk.

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
from jostle.models.objects.object_detector import ObjectDetector, Weights, object_detector
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
class Kin:
    """One `model_type` of a family.

    Attributes:
        network: name of its class in transformers.
        rest: whether the last class is "nothing": then classes compete, and else each is judged alone.
    """

    network: str
    rest: bool = False


@dataclass(frozen=True)
class Family:
    """Networks that are loaded by one name.

    Attributes:
        kin: by `model_type`.
        usual: what a `preprocessor_config.json` would say.
    """

    name: str
    kin: Mapping[str, Kin]
    usual: Mapping[str, Any]


DETR = Family(
    "detr",
    {
        "detr": Kin("DetrForObjectDetection", rest=True),
        "conditional_detr": Kin("ConditionalDetrForObjectDetection"),
        "deformable_detr": Kin("DeformableDetrForObjectDetection"),
    },
    {"size": {"shortest_edge": 800, "longest_edge": 1333}},
)
RT_DETR = Family(
    "rt_detr",
    {"rt_detr": Kin("RTDetrForObjectDetection"), "rt_detr_v2": Kin("RTDetrV2ForObjectDetection")},
    {"size": {"height": 640, "width": 640}, "do_normalize": False},
)
FAMILIES = (DETR, RT_DETR)


@object_detector("detr", source=SOURCE.format("facebook/detr-resnet-50"), takes="folder")
def detr(weights: Weights) -> ObjectDetector:
    """DETR, Conditional DETR or Deformable DETR: a transformer that answers queries with boxes."""
    return _load(DETR, weights)


@object_detector("rt_detr", source=SOURCE.format("PekingU/rtdetr_r50vd"), takes="folder")
def rt_detr(weights: Weights) -> ObjectDetector:
    """RT-DETR, first or second version: the same in real time, on frames of one size."""
    return _load(RT_DETR, weights)


@dataclass(frozen=True)
class Preparation:
    """How frames become what the network sees.

    Attributes:
        size: (height, width) whatever the frame's shape, `Edges` that keep it, or None for frames as they are.
        mode: of interpolation.
    """

    size: tuple[int, int] | None
    edges: Edges | None
    mode: str
    mean: Triple
    std: Triple

    @classmethod
    def of(cls, where: str, settings: Mapping[str, Any]) -> Preparation:
        """What a `preprocessor_config.json` asks for."""
        mean, std = scale_of(settings, IMAGENET_MEAN, IMAGENET_STD)
        mode = "bicubic" if settings.get("resample") == BICUBIC else "bilinear"
        given = settings.get("size")
        if not settings.get("do_resize", True):
            return cls(None, None, mode, mean, std)
        if isinstance(given, int):  # as older folders have it
            return cls(None, (given, settings.get("max_size")), mode, mean, std)
        if isinstance(given, Mapping) and "shortest_edge" in given:
            return cls(None, (given["shortest_edge"], given.get("longest_edge")), mode, mean, std)
        if isinstance(given, Mapping) and {"height", "width"} <= set(given):
            return cls((given["height"], given["width"]), None, mode, mean, std)
        raise CheckpointError(
            f"{where}: size is {given!r}; it has a height and a width, or a shortest and a longest edge", fault="F53"
        )

    def __call__(self, frames: Tensor) -> Tensor:
        """(N, 3, h, w) of (N, 3, H, W) from 0 to 1."""
        height, width = frames.shape[2:]
        size = self.size or (resized(height, width, *self.edges) if self.edges else (height, width))
        if size != (height, width):
            frames = F.interpolate(frames, size, mode=self.mode, antialias=True).clamp(0, 1)
        mean, std = (frames.new_tensor(values).view(3, 1, 1) for values in (self.mean, self.std))
        return (frames - mean) / std


def resized(height: int, width: int, shortest: int, longest: int | None) -> tuple[int, int]:
    """Height and width of a frame whose short side is brought to `shortest`, or less where the long one is too long.

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


class FindingByQueries:
    """Boxes from a network that gives classes and a box for each of its queries."""

    def __init__(self, network: nn.Module, prepare: Preparation, *, rest: bool) -> None:
        self._network, self._prepare, self._rest = network, prepare, rest

    def __call__(self, frames: Tensor) -> Sequence[Boxes]:
        """The boxes of (N, 3, H, W) from 0 to 1, in pixels of the frame."""
        height, width = frames.shape[2:]
        made = self._network(pixel_values=self._prepare(frames))
        scores = made.logits.softmax(-1)[..., :-1] if self._rest else made.logits.sigmoid()
        best, label = scores.double().max(-1)
        middle, size = made.pred_boxes.double().split(2, -1)
        box = torch.cat([middle - size / 2, middle + size / 2], -1).cpu().numpy() * np.array([width, height] * 2)
        return [Boxes(*one) for one in zip(box, label.cpu().numpy(), best.cpu().numpy(), strict=True)]


def _load(family: Family, weights: Weights) -> ObjectDetector:
    if isinstance(weights, Mapping):
        raise BadValue(f"{family.name}: weights are a folder with config.json and model.safetensors, not tensors")
    folder = Path(weights)
    said = str(read_settings(folder / "config.json", family.name).get("model_type"))
    if said not in family.kin:
        other = next((one.name for one in FAMILIES if said in one.kin), None)
        hint = f"; load it as {other!r}" if other else ""
        raise CheckpointError(f"{folder}: holds a {said!r}, not a {' or '.join(family.kin)}{hint}", fault="F54")
    kin, file = family.kin[said], folder / "preprocessor_config.json"
    settings = {**family.usual, **(read_settings(file, family.name) if file.is_file() else {})}
    prepare = Preparation.of(str(file), settings)
    network = pretrained(folder, family.name, kin.network, "head that finds boxes")
    find = FindingByQueries(network, prepare, rest=kin.rest)
    return ObjectDetector(network, find, classes=_names(network.config), name=family.name)


def _names(config: Any) -> tuple[str, ...]:
    names = [config.id2label[i] for i in range(config.num_labels)]
    if all(UNNAMED.fullmatch(name) for name in names):
        return ()
    return tuple("" if name == "N/A" else name for name in names)
