"""Image classifiers of torchvision by name, as `torchvision/resnet50`, with the presets of their weights.

`torchvision/resnet50.IMAGENET1K_V1` selects one of several published weights; without, torchvision's default ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from jostle.errors import UnknownName
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.image_classifier import OneFrame, last_layer, library_module, picture_spec
from jostle.models.recognition.recogniser import (
    Changes,
    Recogniser,
    RecogniserKind,
    Weights,
    changed,
    library,
    with_weights,
)
from jostle.models.weights.shipped.sources import WeightSource

SOURCE = "the file that torchvision's page on image classification links to"
CLASSES = 1000
DIGITS = re.compile(r"[0-9a-f]{8,}")
# Published weights of these were made for pictures on another scale, which the network itself brings them to.
RESCALED = ("googlenet", "inception_v3")


@library("torchvision", source=SOURCE)
def torchvision_model(inner: str) -> RecogniserKind:
    """Any image classifier of torchvision, on single frames."""
    name = f"torchvision/{inner}"
    models = library_module(name, "torchvision.models", "torchvision")
    architecture, _, tag = inner.partition(".")
    known = models.list_models(module=models)
    if architecture not in known:
        raise UnknownName("image classifier of torchvision", architecture, known)
    published = models.get_model_weights(architecture)
    tags = [one.name for one in published]
    if tag and tag not in tags:
        raise UnknownName(f"weights of torchvision's {architecture}", tag, tags)
    chosen = published[tag] if tag else published.DEFAULT
    preset = chosen.transforms()
    spec = picture_spec(
        name,
        preset.resize_size[0],
        preset.crop_size * 2 if len(preset.crop_size) == 1 else preset.crop_size,
        preset.interpolation.value,
        preset.mean,
        preset.std,
    )
    # The first digits of the checksum end the name of a file.
    digits = chosen.url.rpartition("-")[2].partition(".")[0]
    checksum = digits if DIGITS.fullmatch(digits) else ""
    place = WeightSource(chosen.url, mebibytes=chosen.meta.get("_file_size"), sha256=checksum)
    return RecogniserKind(name, partial(_load, models, architecture, name, spec), SOURCE, spec, place=place)


def _load(models: Any, architecture: str, name: str, spec: InputSpec, weights: Weights, changes: Changes) -> Recogniser:
    rest: dict[str, Any] = {}
    if architecture in RESCALED:
        named: Any = weights if isinstance(weights, Mapping) else {}
        with_side = any(key.startswith(("aux", "Aux")) for key in named)
        rest = {"transform_input": True, "aux_logits": with_side, "init_weights": False}

    def build(classes: int) -> nn.Module:
        network: nn.Module = models.get_model(architecture, weights=None, num_classes=classes, **rest)
        return network

    with torch.device("meta"):
        head = last_layer(build(CLASSES), CLASSES)
    recogniser = with_weights(name, build, changed(name, spec, changes), weights, head=f"{head}.bias", classes=CLASSES)
    assert isinstance(recogniser.network, nn.Module)
    return Recogniser(OneFrame(recogniser.network), recogniser.spec, name=name, head=f"network.{head}")
