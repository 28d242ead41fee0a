"""Recognisers of the Mini Kinetics-C study and of IBM's comparison of video networks, whose code the study is built on.

Chen et al., "Deep Analysis of CNN-based Spatio-temporal Representations for Action Recognition", CVPR 2021; Yi et al.,
"Benchmarking the Robustness of Spatial-Temporal Models Against Corruptions", NeurIPS 2021. The study released no
weights, IBM those of the networks of 50 layers without strides in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from jostle.models.input_spec import InputSpec
from jostle.models.networks.frame_resnet import TamConfig, TamResNet
from jostle.models.networks.inflated_resnet import InflatedConfig, InflatedResNet
from jostle.models.networks.video_inception import VideoInception, VideoInceptionConfig
from jostle.models.recognition.pytorchvideo import strip_prefixes
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, add_recogniser, recognisers, with_weights

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


NETWORKS: dict[str, tuple[Callable[[Any], nn.Module], Any]] = {
    "i3d_resnet18": (InflatedResNet, InflatedConfig(18)),
    "i3d_resnet50": (InflatedResNet, InflatedConfig(50)),
    "s3d_resnet18": (InflatedResNet, InflatedConfig(18, split=True)),
    "s3d_resnet50": (InflatedResNet, InflatedConfig(50, split=True)),
    "tam_resnet18": (TamResNet, TamConfig(18)),
    "tam_resnet50": (TamResNet, TamConfig(50)),
    "i3d_inception": (VideoInception, VideoInceptionConfig()),
    "s3d_inception": (VideoInception, VideoInceptionConfig(split=True)),
}


def _load(name: str, weights: Weights, changes: Changes) -> Recogniser:
    kind = recognisers[name]
    settings = kind.settings(changes)
    tensors = strip_prefixes(weights) if isinstance(weights, Mapping) else weights

    def build(classes: int) -> nn.Module:
        network, config = NETWORKS[name]
        return network(replace(config, classes=classes, **settings))

    return with_weights(name, build, kind.input_spec(changes), tensors, head=HEAD)


# What each is, and its public weights.
RECOGNISERS = {
    "i3d_resnet18": (
        'ResNet of 18 layers, all convolutions 3x3x3; the "3D ResNet-18" of Mini Kinetics-C with `time_stride`.',
        _NONE,
    ),
    "i3d_resnet50": (
        "ResNet of 50 layers, the middle convolution of a block 3x3x3.",
        f"K400-I3D-ResNet-50-f32.pth.tar of {_RELEASE}",
    ),
    "s3d_resnet18": ("ResNet of 18 layers, each convolution one over space and one over time.", _NONE),
    "s3d_resnet50": ("ResNet of 50 layers, the middle convolution of a block one over space and one over time.", _NONE),
    "tam_resnet18": (
        "ResNet of 18 layers on single frames, whose channels are mixed with the frames before and after.",
        _NONE,
    ),
    "tam_resnet50": ("The same of 50 layers.", f"K400-TAM-ResNet-50-f32.pth.tar of {_RELEASE}"),
    "i3d_inception": (
        "Inception-v1 with all convolutions inflated along time; padding and strides differ from the original I3D's.",
        _NONE,
    ),
    "s3d_inception": ("Inception-v1, each wide convolution one over space and one over time.", _NONE),
}
for _name, (_summary, _source) in RECOGNISERS.items():
    _spec = INCEPTIONS if _name.endswith("inception") else RESNETS
    add_recogniser(_name, _summary, _load, spec=_spec, views=VIEWS, options=OPTIONS, source=_source)
