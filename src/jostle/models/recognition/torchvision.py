"""Recognisers of torchvision: video networks trained on Kinetics-400, and image classifiers as `torchvision/resnet50`.

Specs are the presets of the published weights. `torchvision/resnet50.IMAGENET1K_V1` selects one of several weights of
an image classifier; without, torchvision's default ones.

torchvision cannot be installed beside every torch, so it is only imported when one of these is loaded.
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
    add_recogniser,
    changed,
    library,
    with_weights,
)
from jostle.models.weights.sources import WeightSource

_CUT: dict[str, Any] = {"antialias": False, "odd_margin": "even"}
_KINETICS: dict[str, Any] = {"mean": (0.43216, 0.394666, 0.37645), "std": (0.22803, 0.22145, 0.216989)}
_IMAGENET: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
_MIDDLE: dict[str, Any] = {"mean": (0.45, 0.45, 0.45), "std": (0.225, 0.225, 0.225)}

# Frames were resized without antialiasing, and cut where torchvision cuts.
RESNETS = InputSpec(16, 16, (128, 171), 112, fps=15, **_CUT, **_KINETICS)
S3D = InputSpec(128, 128, (256, 256), 224, fps=15, **_CUT, **_KINETICS)
MVIT = InputSpec(16, 16, 256, 224, fps=7.5, **_CUT, **_MIDDLE)
SWIN = InputSpec(32, 32, 256, 224, fps=15, **_CUT, **_IMAGENET)

SOURCE = "tensors of the KINETICS400_V1 file that torchvision's page on video classification links to"


def _load(name: str, weights: Weights, changes: Changes) -> Recogniser:
    video = library_module(name, "torchvision.models.video", "torchvision")
    _, spec, head = VIDEO_NETWORKS[name]

    def build(classes: int) -> nn.Module:
        network: nn.Module = getattr(video, name)(weights=None, num_classes=classes)
        return network

    return with_weights(name, build, changed(name, spec, changes), weights, head=head)


VIDEO_NETWORKS = {
    "r3d_18": ("ResNet of 18 layers, all convolutions over space and time.", RESNETS, "fc.bias"),
    "mc3_18": ("ResNet of 18 layers, over time only in the first ones.", RESNETS, "fc.bias"),
    "r2plus1d_18": ("ResNet of 18 layers, each convolution one over space and one over time.", RESNETS, "fc.bias"),
    "s3d": ("Inception with convolutions over space and over time apart.", S3D, "classifier.1.bias"),
    "mvit_v2_s": ("Multiscale transformer, second version, small.", MVIT, "head.1.bias"),
    "swin3d_t": ("Transformer with shifted windows over space and time, tiny.", SWIN, "head.bias"),
}
for _name, (_summary, _spec, _) in VIDEO_NETWORKS.items():
    add_recogniser(_name, _summary, _load, spec=_spec, source=SOURCE)

IMAGE_SOURCE = "the file that torchvision's page on image classification links to"
IMAGE_CLASSES = 1000
DIGITS = re.compile(r"[0-9a-f]{8,}")
# Published weights of these were made for pictures on another scale, which the network itself brings them to.
RESCALED = ("googlenet", "inception_v3")


@library("torchvision", source=IMAGE_SOURCE)
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
    return RecogniserKind(
        name, partial(_load_image_classifier, models, architecture, name, spec), IMAGE_SOURCE, spec, place=place
    )


def _load_image_classifier(
    models: Any, architecture: str, name: str, spec: InputSpec, weights: Weights, changes: Changes
) -> Recogniser:
    rest: dict[str, Any] = {}
    if architecture in RESCALED:
        named: Any = weights if isinstance(weights, Mapping) else {}
        with_side = any(key.startswith(("aux", "Aux")) for key in named)
        rest = {"transform_input": True, "aux_logits": with_side, "init_weights": False}

    def build(classes: int) -> nn.Module:
        network: nn.Module = models.get_model(architecture, weights=None, num_classes=classes, **rest)
        return network

    with torch.device("meta"):
        head = last_layer(build(IMAGE_CLASSES), IMAGE_CLASSES)
    recogniser = with_weights(
        name, build, changed(name, spec, changes), weights, head=f"{head}.bias", classes=IMAGE_CLASSES
    )
    assert isinstance(recogniser.network, nn.Module)
    return Recogniser(OneFrame(recogniser.network), recogniser.spec, name=name, head=f"network.{head}")
