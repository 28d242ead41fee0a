"""Recognisers of the Mini Kinetics-C study and of IBM's comparison of video networks, whose code the study is built on.

Chen et al., "Deep Analysis of CNN-based Spatio-temporal Representations for Action Recognition", CVPR 2021; Yi et al.,
"Benchmarking the Robustness of Spatial-Temporal Models Against Corruptions", NeurIPS 2021. The study released no
weights, IBM those of the networks of 50 layers without strides in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from jostle.models.input_spec import InputSpec
from jostle.models.networks import inflated_resnet, tam_resnet, video_inception
from jostle.models.recognition import public_names
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, recogniser, recognisers, with_weights

_ALL: dict[str, Any] = {"step": 2, "odd_margin": "even"}
RESNETS = InputSpec(32, 64, 256, 224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), **_ALL)
INCEPTIONS = InputSpec(32, 64, 256, 224, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), **_ALL)
VIEWS: dict[str, Changes] = {
    "published": {"clips": 10, "crops": "three", "resize": 256, "size": 256, "joined": "logits"},
    "kinetics-c": {"spread": "even", "joined": "logits"},
}
OPTIONS = {"time_stride": False}
HEAD = "fc.bias"

_RELEASE = "https://github.com/IBM/action-recognition-pytorch (release weights-v0.1)"
_NONE = "none are public; a file that jostle train wrote, or one in the names of IBM's action-recognition-pytorch"


@recogniser("i3d_resnet18", spec=RESNETS, views=VIEWS, options=OPTIONS, source=_NONE)
def i3d_resnet18(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 18 layers, all convolutions 3x3x3; the "3D ResNet-18" of Mini Kinetics-C with `time_stride`."""
    return _load("i3d_resnet18", weights, changes)


@recogniser(
    "i3d_resnet50",
    spec=RESNETS,
    views=VIEWS,
    options=OPTIONS,
    source=f"K400-I3D-ResNet-50-f32.pth.tar of {_RELEASE}",
)
def i3d_resnet50(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 50 layers, the middle convolution of a block 3x3x3."""
    return _load("i3d_resnet50", weights, changes)


@recogniser("s3d_resnet18", spec=RESNETS, views=VIEWS, options=OPTIONS, source=_NONE)
def s3d_resnet18(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 18 layers, each convolution one over space and one over time."""
    return _load("s3d_resnet18", weights, changes)


@recogniser("s3d_resnet50", spec=RESNETS, views=VIEWS, options=OPTIONS, source=_NONE)
def s3d_resnet50(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 50 layers, the middle convolution of a block one over space and one over time."""
    return _load("s3d_resnet50", weights, changes)


@recogniser("tam_resnet18", spec=RESNETS, views=VIEWS, options=OPTIONS, source=_NONE)
def tam_resnet18(weights: Weights, changes: Changes) -> Recogniser:
    """ResNet of 18 layers on single frames, whose channels are mixed with the frames before and after."""
    return _load("tam_resnet18", weights, changes)


@recogniser(
    "tam_resnet50",
    spec=RESNETS,
    views=VIEWS,
    options=OPTIONS,
    source=f"K400-TAM-ResNet-50-f32.pth.tar of {_RELEASE}",
)
def tam_resnet50(weights: Weights, changes: Changes) -> Recogniser:
    """The same of 50 layers."""
    return _load("tam_resnet50", weights, changes)


@recogniser("i3d_inception", spec=INCEPTIONS, views=VIEWS, options=OPTIONS, source=_NONE)
def i3d_inception(weights: Weights, changes: Changes) -> Recogniser:
    """Inception-v1 with all convolutions inflated along time; padding and strides differ from the original I3D's."""
    return _load("i3d_inception", weights, changes)


@recogniser("s3d_inception", spec=INCEPTIONS, views=VIEWS, options=OPTIONS, source=_NONE)
def s3d_inception(weights: Weights, changes: Changes) -> Recogniser:
    """Inception-v1, each wide convolution one over space and one over time."""
    return _load("s3d_inception", weights, changes)


def _load(name: str, weights: Weights, changes: Changes) -> Recogniser:
    kind = recognisers[name]
    settings = kind.settings(changes)
    tensors = public_names.strip_prefixes(weights) if isinstance(weights, Mapping) else weights

    def build(classes: int) -> nn.Module:
        if name in inflated_resnet.CONFIGS:
            inflated = replace(inflated_resnet.CONFIGS[name], classes=classes, **settings)
            return inflated_resnet.InflatedResNet(inflated)
        if name in tam_resnet.CONFIGS:
            return tam_resnet.TamResNet(replace(tam_resnet.CONFIGS[name], classes=classes, **settings))
        inception = replace(video_inception.CONFIGS[name], classes=classes, **settings)
        return video_inception.VideoInception(inception)

    return with_weights(name, build, kind.input_spec(changes), tensors, head=HEAD)
