"""Recognisers of torchvision, trained on Kinetics-400, with their published presets as specs.

torchvision cannot be installed beside every torch, so it is only imported when one of these is loaded.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from jostle.models.input_spec import InputSpec
from jostle.models.recognition.image_classifier import library_module
from jostle.models.recognition.recogniser import (
    Changes,
    Recogniser,
    Weights,
    changed,
    recogniser,
    with_weights,
)

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


@recogniser("r3d_18", spec=RESNETS, source=SOURCE)
def r3d_18(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 18 layers, all convolutions over space and time."""
    return _load("r3d_18", changed("r3d_18", RESNETS, changes), weights, "fc.bias")


@recogniser("mc3_18", spec=RESNETS, source=SOURCE)
def mc3_18(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 18 layers, over time only in the first ones."""
    return _load("mc3_18", changed("mc3_18", RESNETS, changes), weights, "fc.bias")


@recogniser("r2plus1d_18", spec=RESNETS, source=SOURCE)
def r2plus1d_18(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 18 layers, each convolution one over space and one over time."""
    return _load("r2plus1d_18", changed("r2plus1d_18", RESNETS, changes), weights, "fc.bias")


@recogniser("s3d", spec=S3D, source=SOURCE)
def s3d(weights: Weights, changes: Changes) -> Recogniser:
    """Inception with convolutions over space and over time apart."""
    return _load("s3d", changed("s3d", S3D, changes), weights, "classifier.1.bias")


@recogniser("mvit_v2_s", spec=MVIT, source=SOURCE)
def mvit_v2_s(weights: Weights, changes: Changes) -> Recogniser:
    """Multiscale transformer, second version, small."""
    return _load("mvit_v2_s", changed("mvit_v2_s", MVIT, changes), weights, "head.1.bias")


@recogniser("swin3d_t", spec=SWIN, source=SOURCE)
def swin3d_t(weights: Weights, changes: Changes) -> Recogniser:
    """Transformer with shifted windows over space and time, tiny."""
    return _load("swin3d_t", changed("swin3d_t", SWIN, changes), weights, "head.bias")


def _load(name: str, spec: InputSpec, weights: Weights, head: str) -> Recogniser:
    video = library_module(name, "torchvision.models.video", "torchvision")

    def build(classes: int) -> nn.Module:
        network: nn.Module = getattr(video, name)(weights=None, num_classes=classes)
        return network

    return with_weights(name, build, spec, weights, head=head)
